"""A model of the datasets' commit protocol: every interleaving of collectors of rows, modifiers, expiring and
pruning, a packer of the log, a tagger and readers, with kills and power cuts between any two steps.

Each function below is one who acts; each yield is a point where others run. tests/dataset/search.py runs them
in all orders and looks at each state; a change of the protocol changes this first.

What is inside a .cdd file is the crash simulator's business: here it is a list of rows of which a power cut
keeps any prefix that holds the synced ones. A name that was linked or deleted is durable after a sync of its
folder; until then a power cut keeps it or not, each on its own. Scaled down: 2 rows a superchunk, 2 commits a
pack. A file's owner, whose name is used once, stands for the id by which an extent knows it.

Locks: `alive`, writers whose names are locked as long as they live; `tails`, who appends; `pruning`.
"""

SEG, CAP = 2, 2


class ViolationError(Exception):
    """What must never be."""


class World:
    """The files, log and locks of one dataset, and what was acknowledged to whom."""

    def __init__(self, mut):
        self.mut = mut
        self.alive = set()
        self.tails = {}
        self.pruning = None
        self.notes = (0, ())  # up to which version files were looked at by prune, and those that were left
        self.dirty = set()
        self.undel = {}
        self.lossy = False
        self.once = set()
        self.known = {}
        self.files = {name: {"rows": [], "sync": 0, "owner": ""} for name in ("A1", "T1")}
        self.objs = {
            ("c", 0): {
                "A": [("A1", "", 0, None)],
                "T": [("T1", "", 0, None)],
                "dropped": (),
                "N": 0,
                "next": 2,
                "floor": 0,
                "ops": [],
                "tags": {},
            }
        }
        self.acked = {}
        self.rows_acked = []
        self.ops_acked = []
        self.mods_acked = []
        self.tags_acked = []
        self.maxhead = 0

    def key(self):
        parts = [
            self.files,
            sorted(self.objs.items()),
            sorted(self.alive),
            self.tails,
            self.pruning,
            self.notes,
            sorted(self.dirty),
            sorted(self.undel.items()),
        ]
        parts += [
            sorted(self.acked.items()),
            self.rows_acked,
            self.ops_acked,
            self.mods_acked,
            self.tags_acked,
        ]
        return repr([*parts, sorted(self.once), sorted(self.known.items())])


def rows_of(w, st, col, live=False):
    """The rows of a column, None where a file or a row that the version needs is not there."""
    out = []
    for f, owner, first, count in st[col]:
        if f not in w.files or w.files[f]["owner"] != owner:
            return None
        have = w.files[f]["rows"][first:]
        if count is not None and len(have) < count:
            return None
        out += have if count is None else have[:count]
    return out if live else (out[: st["N"]] if len(out) >= st["N"] else None)


def used(st):
    return {f for col in "AT" for f, *_ in st[col]}


def dup(st):
    return dict(st, A=list(st["A"]), T=list(st["T"]), ops=list(st["ops"]), tags=dict(st["tags"]))


def content(w, st):
    return [rows_of(w, st, "A"), rows_of(w, st, "T")]


def seg(v):
    return (v - 1) // SEG


def find_head(w, n=0):
    while True:
        yield
        if ("c", n + 1) in w.objs:
            n += 1
            continue
        if "head-ignores-packs" not in w.mut:
            yield
            if ("p", seg(n + 1)) in w.objs:
                n = (seg(n + 1) + 1) * SEG
                continue
        return n


def read_commit(w, v):
    yield
    st = w.objs.get(("c", v))
    if v and not (st and "pack-not-looked-at-again" in w.mut):
        yield
        p = w.objs.get(("p", seg(v)))
        if p:
            st = p[v]  # a pack wins: the object may be a ghost
    if st is None:
        raise ViolationError("a version that was found cannot be read")
    return dup(st)


def sealed_rows(st, col):
    return sum(c for *_, c in st[col] if c is not None)


def apply(st, op):
    """The state after an operation; None where they conflict."""
    k = op[0]
    if k in ("append", "roll"):
        st["N"] = op[2]
    if k == "roll":
        for col, new in zip("AT", op[3:], strict=False):
            f, owner, first, _ = st[col][-1]
            st[col][-1] = (f, owner, first, op[2] - sealed_rows(st, col))
            st[col].append((new, op[1][0], 0, None))
            st["next"] = max(st["next"], int(new[1:]) + 1)
    elif k == "mod":
        row, new, at, out = op[2], op[3], 0, []
        for f, owner, first, c in st["A"]:
            if at <= row and (c is None or row < at + c):
                if row > at:
                    out.append((f, owner, first, row - at))
                out.append((new, op[1][0], 0, 1))
                if c is None or row + 1 < at + c:
                    out.append((f, owner, first + row + 1 - at, None if c is None else at + c - row - 1))
            else:
                out.append((f, owner, first, c))
            at += c if c is not None else 10**9
        st["A"] = out
        st["next"] = max(st["next"], int(new[1:]) + 1)
    elif k == "expire":
        st["floor"] = max(st["floor"], op[2])
    elif k == "tag":
        if op[2] < st["floor"]:
            return None
        st["tags"][op[1]] = op[2]
    st["ops"] = st["ops"] + [op[:3]]
    return st


def conflict(mine, theirs):
    if mine[0] == "mod" and theirs[0] == "mod":
        return mine[2] == theirs[2]
    return mine[0] in ("append", "roll") and theirs[0] in ("append", "roll")


def sync_log(w):
    yield
    w.dirty.clear()
    w.undel.clear()


def commit(w, me, base, op):
    n, stale = base, None
    while True:
        h = yield from find_head(w, n)
        for v in range(n + 1, h + 1):
            st = yield from read_commit(w, v)
            if "no-conflict-check" not in w.mut and conflict(op, st["ops"][-1]):
                return None
        n = h
        st = yield from read_commit(w, n)
        if "stale-state-put-again" in w.mut:
            stale = st = dup(stale or st)
        new = apply(dup(st), op)
        if new is None:
            return None
        new["dropped"] = tuple(sorted(used(st) - used(new)))
        if w.known.get(me) != n and "built-on-unsynced-commit" not in w.mut:
            yield from sync_log(w)
        yield  # put if absent: content synced, then link()
        mine = ("c", n + 1)
        ok = mine not in w.objs or "put-replaces" in w.mut
        if ok:
            w.objs[mine] = new
            w.dirty.add(mine)
        if ok and w.lossy and me not in w.once:
            w.once.add(me)
            ok = False  # it landed, the answer was lost
        if not ok:
            if "no-write-id" in w.mut:
                continue
            st = yield from read_commit(w, n + 1)
            if st["ops"][-1] != op[:3]:
                continue  # somebody else's: look what it did, try again
        if "ghost-not-checked" not in w.mut:
            yield
            p = w.objs.get(("p", seg(n + 1)))
            if p and p[n + 1]["ops"][-1:] != [op[:3]]:
                continue  # its answer came too late
        if "no-folder-sync" not in w.mut:
            yield from sync_log(w)
        yield
        w.known[me] = n + 1  # acknowledged
        w.acked[n + 1] = content(w, new)
        w.ops_acked.append(op[:3])
        if op[0] == "mod":
            w.mods_acked.append(op[2])
        return n + 1


def create(w, me, col, number):
    """A new file, of a number that no version has had: what prune deletes is told by names."""
    w.alive.add(me)
    while True:
        yield
        name = f"{col}{number}"
        if name in w.files:
            number += 1
            continue
        w.files[name] = {"rows": [], "sync": 0, "owner": me}
        if "number-used-again" in w.mut:
            return name
        h = yield from find_head(w)
        st = yield from read_commit(w, h)
        if number >= st["next"]:
            return name
        yield
        del w.files[name]
        number = st["next"]


def let_go(w, me):
    """What a writer does at its end, or the system when it is killed."""
    w.alive.discard(me)
    for f in [f for f in w.tails if w.tails[f] == me]:
        del w.tails[f]
    if w.pruning == me:
        w.pruning = None


def collector(w, me, n_rows):
    w.alive.add(me)
    while True:
        h = yield from find_head(w)
        st = yield from read_commit(w, h)
        a, t = st["A"][-1][0], st["T"][-1][0]
        yield
        if a not in w.files or t not in w.files:
            continue  # a newer head has other tails
        if a in w.tails or t in w.tails:
            return let_go(w, me)
        w.tails[a] = w.tails[t] = me
        h = yield from find_head(w, h)
        st = yield from read_commit(w, h)
        if (a, t) == (st["A"][-1][0], st["T"][-1][0]):
            break
        del w.tails[a], w.tails[t]
    if "opened-without-folder-sync" not in w.mut:
        yield from sync_log(w)
        w.known[me] = h
    yield  # what opening a .cdd for appending does
    for f in (a, t):
        w.files[f]["sync"] = len(w.files[f]["rows"])
    na, nt = len(rows_of(w, st, "A", True)), len(rows_of(w, st, "T", True))
    rows = min(na, nt)
    tail_rows = rows - sealed_rows(st, "T")
    for i in range(n_rows + 1):
        if (i == 0 and na != nt and "uneven-tails-not-sealed" not in w.mut) or tail_rows >= CAP:
            a2 = yield from create(w, me, "A", st["next"])
            t2 = yield from create(w, me, "T", int(a2[1:]))
            w.tails[a2] = w.tails[t2] = me
            h = yield from commit(w, me, h, ("roll", (me, i), rows, a2, t2))
            if h is None:
                raise ViolationError("two collectors")
            del w.tails[a], w.tails[t]
            a, t, tail_rows = a2, t2, 0
            st = yield from read_commit(w, h)
        if i == n_rows:
            break
        if early := "version-before-flush" in w.mut:
            h = yield from commit(w, me, h, ("append", (me, i), rows + 1))
        yield
        w.files[a]["rows"].append((rows, me, 0))
        yield
        w.files[t]["rows"].append((rows, me))
        yield
        w.files[a]["sync"] = len(w.files[a]["rows"])
        if "flush-acknowledged-early" not in w.mut:
            yield
            w.files[t]["sync"] = len(w.files[t]["rows"])
        yield
        w.rows_acked.append((rows, me))
        rows += 1
        tail_rows += 1  # flush() returns
        if i % 2 == 0 and not early:
            h = (yield from commit(w, me, h, ("append", (me, i), rows))) or h
    yield
    return let_go(w, me)


def modifier(w, me, row, meanwhile=()):
    """Changes a row; `meanwhile` is what others do before it creates its file."""
    h = yield from find_head(w)
    st = yield from read_commit(w, h)
    yield
    old = rows_of(w, st, "A")
    if old is None or len(old) <= row:
        return
    yield from meanwhile
    if "modified-in-place" in w.mut:
        w.files[st["A"][0][0]]["rows"][row] = (*old[row][:2], old[row][2] + 1)
        return
    f = yield from create(w, me, "A", st["next"])
    yield
    w.files[f]["rows"].append((*old[row][:2], old[row][2] + 1))
    w.files[f]["sync"] = 1
    if "owner-lets-go-before-commit" in w.mut:
        let_go(w, me)
    done = yield from commit(w, me, h, ("mod", (me,), row, f))
    yield
    if done is None:
        w.files.pop(f, None)
    let_go(w, me)


def packer(w, me):
    h = yield from find_head(w)
    for k in range(h // SEG):
        mine = range(k * SEG + 1, k * SEG + SEG + 1)
        yield
        if ("p", k) not in w.objs:
            pack = {}
            for v in mine:
                pack[v] = yield from read_commit(w, v)
            yield
            if ("p", k) not in w.objs:
                w.objs["p", k] = pack
                w.dirty.add(("p", k))
        if "deleted-before-pack-durable" not in w.mut:
            yield from sync_log(w)
        for v in mine:
            yield
            if ("c", v) in w.objs:
                w.undel["c", v] = w.objs.pop(("c", v))
                w.dirty.discard(("c", v))


def tagger(w, me, v):
    h = yield from find_head(w)
    st = yield from read_commit(w, h)
    if "tag-outside-log" in w.mut:
        yield
        w.tags_acked += [v] * (v >= st["floor"])
    elif (yield from commit(w, me, h, ("tag", me, v))) is not None:
        w.tags_acked.append(v)


def reader(w, me, hint):
    seen = w.maxhead
    h = yield from find_head(w, hint)
    if h < seen:
        raise ViolationError("a reader found an older head than was acknowledged before")
    st = yield from read_commit(w, h)
    if h in w.acked and h >= st["floor"] and None not in (c := content(w, st)) and c != w.acked[h]:
        raise ViolationError("a reader saw another version than was acknowledged")
    yield
    a = rows_of(w, st, "A", True)
    yield
    t = rows_of(w, st, "T", True)
    n = len(t or []) if "live-rows-by-index-alone" in w.mut else min(len(a or []), len(t or []))
    if a is None or t is None:
        h2 = yield from find_head(w, h)
        st2 = yield from read_commit(w, h2)
        if st2["floor"] > h and h not in st2["tags"].values():
            return
        raise ViolationError("a file of a version that is not expired is gone")
    if n < st["N"] or len(a) < n or [x[:2] for x in a[:n]] != t[:n]:
        raise ViolationError("a live view that is not aligned")
