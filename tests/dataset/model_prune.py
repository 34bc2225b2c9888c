"""Of the model of the protocol: who lets versions expire, and deletes files."""

from tests.dataset.model import commit, create, find_head, let_go, modifier, read_commit, sync_log, used


def dying(w, me):
    """A modifier that is killed before its commit."""
    h = yield from find_head(w)
    st = yield from read_commit(w, h)
    yield from create(w, me, "A", st["next"])
    let_go(w, me)


def expirer(w, me, keep):
    h = yield from find_head(w)
    yield from commit(w, me, h, ("expire", (me,), max(0, h - keep)))


def durable_head(w, h):
    h = yield from find_head(w, h)
    if "pruned-on-unsynced-log" not in w.mut:
        yield from sync_log(w)  # a power cut takes neither a floor nor that a tag is gone back
    st = yield from read_commit(w, h)
    return h, st


def references(w, h, st, of_all):
    """Files of the versions that are kept. What a version dropped is in versions that follow each other, so
    of those only the first and the last are asked, and those with a tag."""
    states = []
    kept = range(st["floor"], h + 1) if of_all else (st["floor"], h)
    for v in {*kept, *st["tags"].values()}:
        states.append((yield from read_commit(w, v)))
    return set().union(*map(used, states))


def pruner(w, me, orphans, meanwhile=()):
    """Deletes what expired versions dropped; with orphans, all that no version has. `meanwhile` is what
    others do when it has seen that a file's owner is gone."""
    yield
    if w.pruning is not None and "two-prune-at-once" not in w.mut:
        return
    w.pruning = me
    h, st = yield from durable_head(w, 0)
    until = st["floor"]
    if orphans:
        found = set(w.files)
    else:
        yield
        done, left = w.notes
        found = set(left)
        for v in range(done + 1, until + 1):
            found |= set((yield from read_commit(w, v))["dropped"])
    refs = yield from references(w, h, st, orphans)
    left = []
    for f in sorted(found):
        yield
        if f not in w.files:
            continue
        if orphans and w.files[f]["owner"] in w.alive and "prune-ignores-owners" not in w.mut:
            continue
        if f not in refs:
            yield from meanwhile
        if "references-before-owner" not in w.mut:
            h, st = yield from durable_head(w, h)
            refs = yield from references(w, h, st, orphans)
        yield
        if f in refs:
            left.append(f)
        else:
            w.files.pop(f, None)
    if not orphans:
        yield
        w.notes = (until, tuple(left))
    let_go(w, me)


def expire_and_prune(w, me, keep, orphans):
    yield from expirer(w, me, keep)
    yield from pruner(w, me, orphans)


def overtaken(w, me):
    """One prunes, and another one while it does."""
    yield from pruner(w, me, True, pruner(w, f"{me}1", True))


def forgetful(w, me):
    """A modifier takes its number when others have had and dropped it; then the notes of prune are lost."""

    def meanwhile():
        yield from modifier(w, f"{me}1", 0)
        yield from modifier(w, f"{me}2", 0)
        yield from expire_and_prune(w, f"{me}3", 0, False)

    yield from modifier(w, me, 1, meanwhile())
    yield from modifier(w, f"{me}4", 1)
    w.notes = (0, ())
    yield from pruner(w, f"{me}5", False)
