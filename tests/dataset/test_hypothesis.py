"""Random operations on two tables against NumPy arrays of each version, with crashes between calls."""

from typing import Any

import hypothesis
import hypothesis.strategies as st
import numpy as np
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

import cdd.dataset as datasets

Arrays = dict[str, np.ndarray]


def new_rows(first: int, count: int, seed: int) -> Arrays:
    random = np.random.default_rng(seed)
    return {
        "time": np.arange(first, first + count) * 10,
        "x": random.integers(-1000, 1000, count).astype(np.int32),
        "ob": random.normal(size=(count, 3, 2)).astype(np.float32),
    }


class Datasets(RuleBasedStateMachine):
    """Every version stays what it was; the live view is what was flushed, in step."""

    def __init__(self) -> None:
        super().__init__()
        self.place = datasets.MemoryDirectory()
        self.now: dict[str, Arrays] = {}
        self.flushed: dict[str, Arrays] = {}
        self.versions: dict[int, dict[str, Arrays]] = {}
        self.next_time = 0

    @initialize(superchunk=st.sampled_from([2000, 1 << 20]), tail=st.sampled_from([1000, 1 << 20]))
    def begin(self, superchunk: int, tail: int) -> None:
        self.options: dict[str, Any] = {"superchunk_bytes": superchunk, "tail_bytes": tail}
        self.w = datasets.open(self.place, "w", **self.options)

    def teardown(self) -> None:
        if hasattr(self, "w"):
            self.w._let_go()

    def _note(self, version: Any) -> None:
        self.flushed = {table: dict(arrays) for table, arrays in self.now.items()}
        self.versions[int(version)] = self.flushed

    @rule(table=st.sampled_from(["", "trades"]), count=st.integers(0, 60), seed=st.integers(0, 99))
    def append(self, table: str, count: int, seed: int) -> None:
        old = self.now.get(table)
        rows = new_rows(self.next_time, count, seed)
        self.next_time += count
        (self.w[table] if table else self.w).append(rows)
        self.now[table] = rows if old is None else {k: np.concatenate((old[k], rows[k])) for k in rows}

    @rule()
    def flush(self) -> None:
        self.w.flush()
        self.flushed = {table: dict(arrays) for table, arrays in self.now.items()}

    @rule()
    def commit(self) -> None:
        self._note(self.w.commit("x"))

    @rule()
    def crash(self) -> None:
        """What was not flushed may be gone; what is there is in step."""
        self.w._let_go()
        self.w = datasets.open(self.place, "a", **self.options)
        for table, arrays in self.now.items():
            rows = len(self.w[table] if table else self.w)
            assert rows >= len(self.flushed.get(table, arrays)["time"]) or table not in self.flushed
            self.now[table] = {name: array[:rows] for name, array in arrays.items()}
        self.w.flush()
        self.flushed = {table: dict(arrays) for table, arrays in self.now.items()}

    def _change(self, work: Any) -> None:
        self.w.close()
        self.now = {table: dict(arrays) for table, arrays in self.now.items()}
        with datasets.transaction(self.place) as t:
            work(t)
        if t.version is not None:
            self._note(t.version)
        self.w = datasets.open(self.place, "a", **self.options)
        self.flushed = {table: dict(arrays) for table, arrays in self.now.items()}

    # How many rows a crash leaves, and which versions the compactor adds, differs from run to run: what is
    # drawn must not depend on it.
    @rule(numbers=st.lists(st.integers(0, 9999), min_size=1, max_size=20), value=st.integers(-99, 99))
    def modify(self, numbers: list[int], value: int) -> None:
        rows = len(self.now.get("", {}).get("time", ()))
        if rows == 0:
            return
        picked = sorted({number % rows for number in numbers})

        def work(t: datasets.Transaction) -> None:
            t["x"][picked] = value
            self.now[""]["x"] = self.now[""]["x"].copy()
            self.now[""]["x"][picked] = value

        self._change(work)

    @rule(ends=st.tuples(st.integers(0, 9999), st.integers(0, 9999)))
    def cut(self, ends: tuple[int, int]) -> None:
        rows = len(self.now.get("trades", {}).get("time", ()))
        if rows == 0:
            return
        start, stop = sorted(end % (rows + 1) for end in ends)

        def work(t: datasets.Transaction) -> None:
            t["trades"].delete(start, stop)
            kept = np.r_[0:start, stop:rows]
            self.now["trades"] = {name: array[kept] for name, array in self.now["trades"].items()}

        self._change(work)

    @rule()
    def compact(self) -> None:
        if self.now:
            self._change(lambda t: t.compact())

    @rule(keep=st.integers(1, 4))
    def expire_and_prune(self, keep: int) -> None:
        if not self.versions:
            return
        datasets.expire(self.place, keep=keep)
        datasets.prune(self.place, orphans=True)
        kept = {int(v) for v in datasets.open(self.place).versions(None)}
        self.versions = {number: arrays for number, arrays in self.versions.items() if number in kept}

    def _check(self, ds: datasets.Dataset, wanted: dict[str, Arrays]) -> None:
        for table, arrays in wanted.items():
            view = ds[table] if table else ds
            for name, array in arrays.items():
                assert np.array_equal(view[name][:], array), (table, name)
            if len(view) > 40:
                starts = np.arange(0, len(view) - 30, 7)
                windows = view.read_windows(starts, 30, columns=("ob", "x"))
                assert np.array_equal(windows["ob"], arrays["ob"][starts[:, None] + np.arange(30)])
                assert view.at(arrays["time"][33] + 3) == 33

    @invariant()
    def every_version_is_what_it_was(self) -> None:
        if not self.versions:
            return
        number = max(self.versions)
        self._check(datasets.open(self.place, as_of=number), self.versions[number])
        first = min(self.versions)
        self._check(datasets.open(self.place, as_of=first), self.versions[first])

    @invariant()
    def the_live_view_is_in_step(self) -> None:
        if not self.now:
            return
        ds = datasets.open(self.place)
        for table, arrays in self.now.items():
            view = ds[table] if table else ds
            least = len(self.flushed[table]["time"]) if table in self.flushed else 0
            assert least <= len(view) <= len(arrays["time"])
            self._check(ds, {table: {name: array[: len(view)] for name, array in arrays.items()}})


Datasets.TestCase.settings = hypothesis.settings(max_examples=25, stateful_step_count=20, deadline=None)
TestDatasets = Datasets.TestCase
