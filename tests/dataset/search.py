"""The model's states: every schedule of small scenarios, with kills and power cuts, depth-first; what must
hold in each; and mutants, steps of the protocol left out or done wrong, each of which must be found.

    python tests/dataset/search.py [states per scenario, 60000 by default] [mutant ... | none]

A schedule is replayed from the start; equal states are visited once.
"""

import itertools
import random
import sys
import time

from tests.dataset.model import (
    ViolationError,
    World,
    collector,
    content,
    let_go,
    modifier,
    packer,
    reader,
    rows_of,
    seg,
    tagger,
)
from tests.dataset.model_prune import dying, expire_and_prune, expirer, forgetful, overtaken, pruner


def modify_and_pack(w, me, row):
    yield from modifier(w, me, row)
    yield from packer(w, me)


def modify_and_read(w, me, row):
    yield from modifier(w, me, row)
    yield from reader(w, me, 0)


def check(w):
    h = 0

    def state(v):
        p = v and w.objs.get(("p", seg(v)))
        return p[v] if p else w.objs.get(("c", v))

    while state(h + 1):
        h += 1
    w.maxhead = max(w.maxhead, max(list(w.acked), default=0))
    if h < max(w.acked, default=0):
        raise ViolationError("an acknowledged version is gone")
    top = state(h)
    ops = set(top["ops"])
    if len(ops) != len(top["ops"]):
        raise ViolationError("an operation was applied twice")
    if not set(w.ops_acked) <= ops:
        raise ViolationError("an acknowledged operation is not in the head")
    keep = set(range(top["floor"], h + 1)) | set(top["tags"].values()) | set(w.tags_acked)
    for v in keep:
        a, t = content(w, state(v))
        if a is None or t is None or [x[:2] for x in a] != t:
            raise ViolationError("a visible version is not whole")
        if v in w.acked and w.acked[v] != [a, t]:
            raise ViolationError("an acknowledged version changed")
    a, t = rows_of(w, top, "A", True), rows_of(w, top, "T", True)
    if a is None or t is None:
        raise ViolationError("a tail is gone")
    n = min(len(a), len(t))
    if [x[:2] for x in a[:n]] != t[:n]:
        raise ViolationError("live rows are not aligned")
    if any(i >= n or t[i] != (i, who) for i, who in w.rows_acked):
        raise ViolationError("rows that were flushed are gone")
    if any(a[r][2] < w.mods_acked.count(r) for r in w.mods_acked):
        raise ViolationError("an acknowledged modification was lost")


def images(w, rng, most=24):  # what a power cut may leave
    fs = [f for f in w.files if w.files[f]["sync"] < len(w.files[f]["rows"])]
    names = sorted(w.dirty)
    gone = sorted(w.undel)
    space = [range(w.files[f]["sync"], len(w.files[f]["rows"]) + 1) for f in fs] + [(0, 1)] * (
        len(names) + len(gone)
    )
    every = list(itertools.islice(itertools.product(*space), 4096))
    return [(fs, names, gone, c) for c in (every if len(every) <= most else rng.sample(every, most))]


def cut(w, image):
    fs, names, gone, c = image
    for f, n in zip(fs, c, strict=False):
        del w.files[f]["rows"][n:]
    for f in w.files.values():
        f["sync"] = len(f["rows"])
    for name, kept in list(zip(names, c[len(fs) :], strict=False)):
        kept or w.objs.pop(name, None)
    for name, back in zip(gone, c[len(fs) + len(names) :], strict=False):
        back and w.objs.setdefault(name, w.undel[name])
    w.alive.clear()
    w.tails.clear()
    w.pruning = None
    w.dirty.clear()
    w.undel.clear()


def frames(g):
    if g is None or g.gi_frame is None:
        return ()
    return (
        g.gi_frame.f_lasti,
        repr({k: x for k, x in g.gi_frame.f_locals.items() if k not in ("w", "meanwhile")}),
        frames(g.gi_yieldfrom),
    )


def run(schedule, actors, mut, lossy, before):
    w = World(mut)
    for name, n in before:  # acts that are over when the search begins
        for _ in ACTS[name](w, name, *n):
            pass
    w.lossy = lossy
    w.dirty.clear()
    w.undel.clear()
    check(w)
    live = {name: ACTS[name](w, name, *args) for name, args in actors}
    crashes = 0
    for act in schedule:
        if act[0] == "run":
            if next(live[act[1]], "over") == "over":
                del live[act[1]]
        else:
            crashes += 1
            if act[0] == "kill":
                del live[act[1]]
                let_go(w, act[1])
            else:
                live.clear()
                cut(w, act[1])
            live[f"W{crashes + 1}"] = collector(w, f"W{crashes + 1}", 1)
    return w, live, crashes


ACTS = {
    "W1": collector,
    "W0": collector,
    "M1": modifier,
    "M2": modifier,
    "M3": modifier,
    "D": dying,
    "E": expirer,
    "F": pruner,
    "O": overtaken,
    "G": expire_and_prune,
    "S": forgetful,
    "P": packer,
    "Q": modify_and_pack,
    "N": modify_and_read,
    "R": reader,
    "X": tagger,
}
ROWS2 = ("W0", (2,))
CHANGED = [ROWS2, ("M3", (0,))]
TWICE = [*CHANGED, ("M2", (0,))]  # a version has dropped a file
SCENARIOS = [  # name, acts that came before, acts at once, crashes, lost answers
    ("collector, two crashes", [], [("W1", (3,))], 2, False),
    ("collector, reader, a crash", [("W0", (1,))], [("W1", (2,)), ("R", (0,))], 1, False),
    ("collector, modifier, a crash", [ROWS2], [("W1", (1,)), ("M1", (0,))], 1, False),
    ("collector, lost answers, a crash", [], [("W1", (2,))], 1, True),
    ("two modifiers of one row", [ROWS2], [("M1", (0,)), ("M2", (0,))], 1, False),
    ("two modifiers of two rows", [ROWS2], [("M1", (0,)), ("M2", (1,))], 1, False),
    ("two modifiers, lost answers", [ROWS2], [("M1", (0,)), ("M2", (1,))], 0, True),
    ("modifier, prune of all", CHANGED, [("M1", (1,)), ("G", (0, True))], 0, False),
    ("modifier, prune of all, a crash", CHANGED, [("M1", (0,)), ("G", (0, True))], 1, False),
    ("modifier, prune of all, reader", CHANGED, [("M1", (0,)), ("G", (0, True)), ("R", (0,))], 0, False),
    ("modifier, prune", TWICE, [("M1", (1,)), ("G", (0, False))], 0, False),
    ("modifier, prune, a crash", TWICE, [("M1", (0,)), ("G", (0, False))], 1, False),
    ("modifier, prune, reader", TWICE, [("M1", (0,)), ("G", (0, False)), ("R", (0,))], 0, False),
    ("collector, prune of all, a crash", [ROWS2], [("W1", (1,)), ("G", (0, True))], 1, False),
    ("collector, prune, a crash", TWICE, [("W1", (1,)), ("G", (0, False))], 1, False),
    ("expiring, prune, a crash", TWICE, [("E", (0,)), ("F", (False,))], 1, False),
    ("two prune, modifier", [ROWS2, ("D", ())], [("O", ()), ("M1", (0,))], 0, False),
    ("numbers, notes of prune that are lost", CHANGED, [("S", ())], 0, False),
    ("tagger, prune of all", TWICE, [("X", (3,)), ("G", (0, True))], 0, False),
    ("tagger, prune", TWICE, [("X", (3,)), ("G", (0, False))], 0, False),
    ("after a packer", [("W0", (3,)), ("P", ())], [("M1", (0,)), ("R", (0,))], 1, False),
    ("modifier, modifier that packs", CHANGED, [("M1", (0,)), ("Q", (1,))], 0, False),
    ("the first also reads", CHANGED, [("N", (0,)), ("Q", (1,))], 0, False),
    ("the same, a crash", CHANGED, [("N", (0,)), ("Q", (1,))], 1, False),
    ("packer, modifier, reader", [("W0", (3,))], [("P", ()), ("M1", (0,)), ("R", (0,))], 0, False),
    ("packer, collector, a crash", [("W0", (3,))], [("P", ()), ("W1", (1,))], 1, False),
]
MUTANTS = {  # a step of the protocol left out or done wrong: the scenario that is tried first
    "head-ignores-packs": "after a packer",
    "pack-not-looked-at-again": "the first also reads",
    "ghost-not-checked": "modifier, modifier that packs",
    "deleted-before-pack-durable": "packer, collector, a crash",
    "no-conflict-check": "two modifiers of one row",
    "stale-state-put-again": "two modifiers of two rows",
    "put-replaces": "two modifiers of two rows",
    "no-write-id": "collector, lost answers, a crash",
    "no-folder-sync": "collector, two crashes",
    "built-on-unsynced-commit": "two modifiers of two rows",
    "opened-without-folder-sync": "collector, two crashes",
    "uneven-tails-not-sealed": "collector, two crashes",
    "version-before-flush": "collector, two crashes",
    "flush-acknowledged-early": "collector, two crashes",
    "modified-in-place": "collector, modifier, a crash",
    "owner-lets-go-before-commit": "modifier, prune of all",
    "prune-ignores-owners": "modifier, prune of all",
    "references-before-owner": "modifier, prune of all",
    "pruned-on-unsynced-log": "expiring, prune, a crash",
    "two-prune-at-once": "two prune, modifier",
    "number-used-again": "numbers, notes of prune that are lost",
    "tag-outside-log": "tagger, prune of all",
    "live-rows-by-index-alone": "collector, reader, a crash",
}


def explore(scenario, mut, limit, seed=1):
    _name, before, actors, budget, lossy = scenario
    rng = random.Random(seed)
    stack, seen, cuts, kills, deep = [[]], set(), 0, 0, 0
    while stack and len(seen) < limit:
        if len(seen) % 2:
            i = rng.randrange(len(stack))
            stack[i], stack[-1] = stack[-1], stack[i]
        schedule = stack.pop()
        try:
            w, live, crashes = run(schedule, actors, mut, lossy, before)
            key = hash((w.key(), tuple((n, frames(g)) for n, g in sorted(live.items())), crashes))
            if key in seen:
                continue
            seen.add(key)
            check(w)
        except ViolationError as e:
            return {"found": str(e), "states": len(seen), "steps": len(schedule)}
        if schedule and schedule[-1][0] != "run":
            cuts += schedule[-1][0] == "power"
            kills += schedule[-1][0] == "kill"
            deep += crashes > 1
        nexts = [("run", n) for n in live]
        if crashes < budget and live:
            nexts += [("kill", n) for n in live if n[0] in "WMNPQEFG"] + [
                ("power", i) for i in images(w, rng)
            ]
        rng.shuffle(nexts)
        stack += [[*schedule, x] for x in nexts]
    return {
        "states": len(seen),
        "power_cuts": cuts,
        "kills": kills,
        "second_crashes": deep,
        "complete": not stack,
    }


def find_mutant(mutant, limit):
    """The scenario in which a mutant is found, and how; None where it is not."""
    first = [name for name, *_ in SCENARIOS].index(MUTANTS[mutant])
    for scenario in SCENARIOS[first:] + SCENARIOS[:first]:
        found = explore(scenario, (mutant,), limit)
        if "found" in found:
            return scenario[0], found
    return None


def main():
    limit = int(sys.argv[1]) if len(sys.argv) > 1 else 60000
    bad = 0
    for scenario in SCENARIOS:
        begin = time.time()
        found = explore(scenario, (), limit)
        bad += "found" in found
        print(f"{scenario[0]:36} {found} {time.time() - begin:.1f}s", flush=True)
    for mutant in [] if sys.argv[2:] == ["none"] else sys.argv[2:] or MUTANTS:
        begin = time.time()
        hit = find_mutant(mutant, limit)
        bad += hit is None
        text = f"found: {hit[1]['found']} ({hit[0]}, state {hit[1]['states']})" if hit else "NOT FOUND"
        print(f"mutant {mutant:28} {text} {time.time() - begin:.1f}s", flush=True)
    sys.exit(bool(bad))


if __name__ == "__main__":
    main()
