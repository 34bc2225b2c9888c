"""A model of the datasets' commit protocol: every interleaving of collectors of rows, modifiers, a clean-up,
a packer of the log, a tagger and readers, with kills and power cuts between any two steps.

Each function below is one who acts; each yield is a point where others run. tests/dataset/search.py runs them
in all orders and looks at each state; a change of the protocol changes this first.

What is inside a .cdd file is the crash simulator's business: here it is a list of rows of which a power cut
keeps any prefix that holds the synced ones. A name that was linked or deleted is durable after a sync of its
folder; until then a power cut keeps it or not, each on its own. Scaled down: 2 rows a superchunk, 2 commits a
pack.
"""

SEG, CAP = 2, 2


class ViolationError(Exception):
    """What must never be."""


class World:
    """The files, log and locks of one dataset, and what was acknowledged to whom."""

    def __init__(self, mut):
        self.mut = mut
        self.locks = {}
        self.dirty = set()
        self.undel = {}
        self.lossy = False
        self.once = set()
        self.known = {}
        self.files = {"A1": {"rows": [], "sync": 0}, "T1": {"rows": [], "sync": 0}}
        self.objs = {
            ("c", 0): {
                "A": [("A1", 0, None)],
                "T": [("T1", 0, None)],
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
            self.locks,
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
    for f, first, count in st[col]:
        if f not in w.files:
            return None
        have = w.files[f]["rows"][first:]
        if count is not None and len(have) < count:
            return None
        out += have if count is None else have[:count]
    return out if live else (out[: st["N"]] if len(out) >= st["N"] else None)


def dup(st):
    return dict(st, A=list(st["A"]), T=list(st["T"]), ops=list(st["ops"]), tags=dict(st["tags"]))


def content(w, st):
    return [rows_of(w, st, "A"), rows_of(w, st, "T")]


def seg(v):
    return (v - 1) // SEG


# The protocol: each yield is a point where others run. Then what must hold in every state, then the search.
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


def apply(st, op):
    """The state after an operation; None where they conflict."""
    k = op[0]
    if k in ("append", "roll"):
        st["N"] = op[2]
    if k == "roll":
        for col, new in zip("AT", op[3:], strict=False):
            used = sum(c for _, _, c in st[col] if c is not None)
            f, first, c = st[col][-1]
            st[col][-1] = (f, first, op[2] - used)
            st[col].append((new, 0, None))
            st["next"] = max(st["next"], int(new[1:]) + 1)
    elif k == "mod":
        row, new, at, out = op[2], op[3], 0, []
        for f, first, c in st["A"]:
            if at <= row and (c is None or row < at + c):
                if row > at:
                    out.append((f, first, row - at))
                out.append((new, 0, 1))
                if c is None or row + 1 < at + c:
                    out.append((f, first + row + 1 - at, None if c is None else at + c - row - 1))
            else:
                out.append((f, first, c))
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
        if w.known.get(me) != n and "built-on-unsynced-commit" not in w.mut:
            yield
            w.dirty.clear()
            w.undel.clear()
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
            yield
            w.dirty.clear()
            w.undel.clear()
        yield
        w.known[me] = n + 1  # acknowledged
        w.acked[n + 1] = content(w, new)
        w.ops_acked.append(op[:3])
        if op[0] == "mod":
            w.mods_acked.append(op[2])
        return n + 1


def create(w, me, col, number):
    while True:
        yield
        if f"{col}{number}" in w.files:
            number += 1
            continue
        w.files[f"{col}{number}"] = {"rows": [], "sync": 0}
        w.locks[f"{col}{number}"] = me
        return f"{col}{number}"


def unlock(w, me, names):
    for f in [f for f in names if w.locks.get(f) == me]:
        del w.locks[f]


def collector(w, me, n_rows):
    while True:
        h = yield from find_head(w)
        st = yield from read_commit(w, h)
        a, t = st["A"][-1][0], st["T"][-1][0]
        yield
        if a not in w.files or t not in w.files:
            continue  # a newer head has other tails
        if a in w.locks or t in w.locks:
            return
        w.locks[a] = w.locks[t] = me
        h = yield from find_head(w, h)
        st = yield from read_commit(w, h)
        if (a, t) == (st["A"][-1][0], st["T"][-1][0]):
            break
        unlock(w, me, [a, t])
    if "opened-without-folder-sync" not in w.mut:
        yield
        w.dirty.clear()
        w.undel.clear()
        w.known[me] = h
    yield  # what opening a .cdd for appending does
    for f in (a, t):
        w.files[f]["sync"] = len(w.files[f]["rows"])
    na, nt = len(rows_of(w, st, "A", True)), len(rows_of(w, st, "T", True))
    rows = min(na, nt)
    tail_rows = rows - sum(c for _, _, c in st["T"] if c is not None)
    for i in range(n_rows + 1):
        if (i == 0 and na != nt and "uneven-tails-not-sealed" not in w.mut) or tail_rows >= CAP:
            a2 = yield from create(w, me, "A", st["next"])
            t2 = yield from create(w, me, "T", int(a2[1:]))
            h = yield from commit(w, me, h, ("roll", (me, i), rows, a2, t2))
            if h is None:
                raise ViolationError("two collectors")
            unlock(w, me, [a, t])
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
    unlock(w, me, [a, t])


def modifier(w, me, row):
    h = yield from find_head(w)
    st = yield from read_commit(w, h)
    yield
    old = rows_of(w, st, "A")
    if old is None or len(old) <= row:
        return
    if "modified-in-place" in w.mut:
        w.files[st["A"][0][0]]["rows"][row] = (*old[row][:2], old[row][2] + 1)
        return
    f = yield from create(w, me, "A", st["next"])
    yield
    w.files[f]["rows"].append((*old[row][:2], old[row][2] + 1))
    w.files[f]["sync"] = 1
    if "unlocked-before-commit" in w.mut:
        unlock(w, me, [f])
    yield from commit(w, me, h, ("mod", (me,), row, f))
    yield
    unlock(w, me, [f])


def references(w, h, st):
    states = []
    for v in {*range(st["floor"], h + 1), *st["tags"].values()}:
        states.append((yield from read_commit(w, v)))
    return {f for s in states for col in "AT" for f, _, _ in s[col]}


def expirer(w, me, keep):
    h = yield from find_head(w)
    h = yield from commit(w, me, h, ("expire", (me,), max(0, h - keep)))
    st = yield from read_commit(w, h)
    refs = yield from references(w, h, st)
    yield
    for f in sorted(set(w.files) - refs):
        yield
        if (f in w.locks and "clean-up-ignores-locks" not in w.mut) or f not in w.files:
            continue
        w.locks.setdefault(f, me)
        if "references-before-lock" not in w.mut:
            h = yield from find_head(w, h)
            st = yield from read_commit(w, h)
            refs = yield from references(w, h, st)
        yield
        f in refs or w.files.pop(f, None)
        unlock(w, me, [f])


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
            yield
            w.dirty.clear()
            w.undel.clear()
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
