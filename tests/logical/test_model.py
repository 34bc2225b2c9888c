"""Random transactions against NumPy: whatever is done, given up or fails, an array is what NumPy has of it.

A state is a place with up to two logical arrays, the NumPy arrays that they must equal, and maybe a
transaction. CDD_LOGICAL_MODELS is how many runs of up to 40 steps there are; dev.py soak makes many.
"""

import os
import shutil
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

import cdd
from cdd import logical
from tests.logical.model_rows import Breaks, BrokenError, key_of, made_member, made_place, same

MODELS = int(os.environ.get("CDD_LOGICAL_MODELS", "12"))
PLACES = ("repository", "in memory", "store", "group", "json")
DTYPES = ("f4", "i2", "M8[ns]", "?", "c8")
SEEDS = st.integers(0, 1 << 30)


class LogicalArrays(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.folder = Path(tempfile.mkdtemp(prefix="cdd-model-"))
        self.truth: dict[str, np.ndarray] = {}
        self.new: dict[str, np.ndarray] = {}
        self.versions: list[tuple[str, dict[str, np.ndarray]]] = []
        self.readers: list[tuple[logical.Array, str, np.ndarray]] = []
        self.t: logical.Transaction | None = None
        self.files = 0
        self.may_leave = False  # whether there may be what no manifest names

    def teardown(self) -> None:
        if self.t is not None:
            self.end(True, 0)
        for reader, _, _ in self.readers:
            reader.close()
        shutil.rmtree(self.folder, ignore_errors=True)

    @initialize(place=st.sampled_from(PLACES), dtype=st.sampled_from(DTYPES), seed=SEEDS)
    def begin_place(self, place: str, dtype: str, seed: int) -> None:
        rng = np.random.default_rng(seed)
        self.dtype = np.dtype(dtype)
        self.tail = tuple(int(size) for size in rng.integers(1, 5, rng.integers(0, 3)))
        self.grid = int(rng.choice([1, 1, 1, 4]))
        self.fill = np.ones((), self.dtype)[()] if rng.random() < 0.4 else None
        self.names = ("a",) if place == "json" else ("a", "deep/b")
        self.is_json = place == "json"
        self.in_memory, self.on_disk = place == "in memory", place == "repository"
        self.where = made_place(place, self.folder)
        if rng.random() < 0.8:
            self.begin()
            for name in self.names:
                self.create(name, 2)

    # ------------------------------------------------------------ what is compared

    def rows(self, seed: int, count: int) -> np.ndarray:
        rng = np.random.default_rng(seed)
        return rng.integers(0, 1000, (count, *self.tail)).astype(self.dtype)

    def opened(self, name: str, **version: Any) -> logical.Array:
        return logical.open(self.where, name, allow=[self.folder], **version)

    def new_path(self) -> Path:
        self.files += 1
        return self.folder / f"file{self.files}"

    @invariant()
    def arrays_are_numpys(self) -> None:
        if self.t is not None:
            assert self.t.names() == sorted(self.new)
            for name, expected in self.new.items():
                same(self.t[name][:], expected)
                assert self.t[name].shape == expected.shape

    def check_committed(self) -> None:
        if isinstance(self.where, Path) and not self.where.exists():
            return
        assert logical.names(self.where) == sorted(self.truth)
        for name, expected in self.truth.items():
            with self.opened(name) as array:
                same(array[:], expected)
                report = array.verify()
                assert report.ok, str(report)
            report = logical.check(self.where, name, allow=[self.folder])
            assert report.ok, str(report)
            assert self.may_leave or report.orphans == []

    # ------------------------------------------------------------ transactions

    @precondition(lambda self: self.t is None)
    @rule()
    def begin(self) -> None:
        create = self.is_json or self.on_disk
        self.t = logical.transaction(self.where, "change", create=create, allow=[self.folder])
        self.t.__enter__()
        self.new = dict(self.truth)

    @precondition(lambda self: self.t is not None)
    @rule(given_up=st.booleans(), seed=SEEDS)
    def end(self, given_up: bool, seed: int) -> None:
        assert self.t is not None
        t, self.t = self.t, None
        held = [t[name] for name in self.new]
        if given_up:
            t.__exit__(BrokenError, BrokenError(), None)
        else:
            t.__exit__(None, None, None)
            self.truth = self.new
            if t.version is not None:
                self.versions.append((t.version, self.truth))
        for array in held:
            for ask in (partial(array.append, self.rows(0, 2)), array.read, array.grow):
                with pytest.raises(ValueError, match=r"not under way|closed"):
                    ask()
        self.check_committed()
        for name, expected in self.truth.items():
            if seed % 3 == 0:
                self.readers.append((self.opened(name), name, expected))

    @precondition(lambda self: self.t is None and (self.in_memory or self.on_disk) and self.truth)
    @rule(seed=SEEDS, count=st.integers(1, 9))
    def come_second(self, seed: int, count: int) -> None:
        """Of two that change one array the second is refused, and leaves nothing."""
        name = sorted(self.truth)[seed % len(self.truth)]
        first = logical.transaction(self.where, "first", lock=False, allow=[self.folder])
        second = logical.transaction(self.where, "second", lock=False, allow=[self.folder])
        with pytest.raises(logical.ConflictError), second:
            second[name].set_attrs(second=seed)
            if not self.in_memory and second[name].shape[0] % self.grid == 0:
                second[name].append(self.rows(seed, count), "cdd")
            with first:
                first[name].set_attrs(first=seed)
        self.check_committed()

    # ------------------------------------------------------------ changes

    def change(self, name: str, do: Callable[[logical.WritableArray], np.ndarray | None]) -> bool:
        """Does it, where the array is there, to both; what is refused changes nothing."""
        assert self.t is not None
        if name not in self.new:
            return False
        array = self.t[name]
        try:
            found = do(array)
        except (logical.LogicalError, BrokenError):
            same(array[:], self.new[name])
            return False
        if found is not None:
            self.new = {**self.new, name: found}
        return True

    name = st.sampled_from(("a", "a", "deep/b"))
    count = st.integers(0, 19)
    under_way = precondition(lambda self: self.t is not None)

    @under_way
    @rule(name=name, count=st.integers(0, 3))
    def create(self, name: str, count: int) -> None:
        assert self.t is not None
        if name in self.new or name not in self.names:
            with pytest.raises(logical.LogicalError):
                self.t.create(name, shape=(0, *self.tail), dtype=self.dtype)
            return
        shape = (count * self.grid if self.fill is not None else 0, *self.tail)
        unit = (self.grid, *(1 for _ in self.tail))
        chunks = (self.grid * (1 + count), *self.tail)
        self.t.create(name, shape=shape, dtype=self.dtype, grid=unit, chunks=chunks, fill_value=self.fill)
        self.new[name] = np.full(shape, 0 if self.fill is None else self.fill, self.dtype)

    @under_way
    @rule(
        name=name,
        count=count,
        seed=SEEDS,
        how=st.sampled_from(["zarr", "raw", "shards", "cdd", "path", "prepared"]),
    )
    def append(self, name: str, count: int, seed: int, how: str) -> None:
        rows = self.rows(seed, count)

        def do(a: logical.WritableArray) -> np.ndarray:
            if how == "prepared":
                a.append_prepared(a.prepare(rows))
            elif how == "raw" and not self.is_json:
                a.append(rows, {"compressors": None})
            elif how == "shards" and not self.is_json:
                chunks = (1 + seed % 3, *self.tail)
                a.append(rows, {}, chunks=chunks, shards=(2 * chunks[0], *self.tail))
            elif how == "path" or (how == "cdd" and self.in_memory):
                a.append(rows, "cdd", path=self.new_path(), options={"chunk_rows": 1 + seed % 7})
            else:
                a.append(rows, "cdd" if how == "cdd" else None)
            return np.concatenate([self.new[name], rows])

        self.may_leave |= how == "prepared"  # where the end is not on the grid
        self.change(name, do)

    @under_way
    @rule(name=name, count=count, seed=SEEDS, is_cdd=st.booleans())
    def append_that_breaks(self, name: str, count: int, seed: int, is_cdd: bool) -> None:
        rows = Breaks(self.rows(seed, count + 1))
        path = self.new_path() if is_cdd and self.in_memory else None
        if self.change(name, lambda a: a.append(rows, "cdd" if is_cdd else None, path=path)):
            raise AssertionError("rows that break off were appended")

    @under_way
    @rule(
        name=name,
        count=count,
        seed=SEEDS,
        kind=st.sampled_from(["cdd", "inside", "outside", "virtual", "column"]),
    )
    def append_member(self, name: str, count: int, seed: int, kind: str) -> None:
        rows = self.rows(seed, count + 1)
        start = seed % (count + 1)
        taken = seed // 7 % (count + 2 - start)

        def do(a: logical.WritableArray) -> np.ndarray:
            path = self.new_path()
            if kind == "virtual" and self.on_disk:
                a.append_virtual(made_member(kind, rows, path))
                return np.concatenate([self.new[name], rows])
            group = a._reading.places.group
            member = made_member(kind.replace("virtual", "outside"), rows, path, group)
            if kind == "inside":
                self.may_leave = True  # it is the user's
            a.append_member(member, taken, start=start, column="x" if kind == "column" else None)
            if kind == "cdd" and seed % 2:  # a collector goes on
                with cdd.open(member, "a") as w:
                    w.append(self.rows(seed + 1, 3))
            return np.concatenate([self.new[name], rows[start : start + taken]])

        self.change(name, do)

    @under_way
    @rule(name=name, seed=SEEDS, codec=st.sampled_from([None, "cdd"]))
    def replace(self, name: str, seed: int, codec: str | None) -> None:
        def do(a: logical.WritableArray) -> None:
            if a.regions:
                a.replace(seed % len(a.regions), None if self.in_memory else codec)
                self.may_leave = True  # of stores, and of files in older versions

        self.change(name, do)

    @under_way
    @rule(name=name, seed=SEEDS)
    def remove(self, name: str, seed: int) -> None:
        def do(a: logical.WritableArray) -> np.ndarray | None:
            if not a.regions:
                return None
            number = seed % len(a.regions)
            region = a.regions[number]
            a.remove(number)
            self.may_leave = True
            if self.fill is None:
                return self.new[name][: region.lo[0]]
            expected = self.new[name].copy()
            expected[tuple(map(slice, region.lo, region.hi))] = self.fill
            return expected

        self.change(name, do)

    @precondition(lambda self: self.t is not None and (self.in_memory or self.on_disk))
    @rule(name=name, seed=SEEDS, split=st.booleans())
    def write(self, name: str, seed: int, split: bool) -> None:
        def do(a: logical.WritableArray) -> np.ndarray:
            expected = self.new[name].copy()
            rng = np.random.default_rng(seed)
            start, stop = sorted(rng.integers(0, len(expected) + 1, 2).tolist())
            key = slice(start, stop, int(rng.integers(1, 4)))
            values = self.rows(seed, len(expected[key]))
            a.write(key, values, split)
            expected[key] = values
            return expected

        self.change(name, do)

    @precondition(lambda self: self.t is not None and self.fill is not None)
    @rule(name=name, seed=SEEDS, is_cdd=st.booleans(), breaks=st.booleans())
    def add(self, name: str, seed: int, is_cdd: bool, breaks: bool) -> None:
        def do(a: logical.WritableArray) -> np.ndarray | None:
            expected = self.new[name].copy()
            lo = seed % (len(expected) + 1) // self.grid * self.grid
            count = min(self.grid * (1 + seed // 11 % 3), len(expected) - lo)
            values = self.rows(seed, count)
            codec = "cdd" if is_cdd and not self.in_memory else None
            a.add((lo, *(0 for _ in self.tail)), Breaks(values) if breaks else values, codec)
            expected[lo : lo + count] = values
            return expected

        self.change(name, do)

    @under_way
    @rule(name=name)
    def grow(self, name: str) -> None:
        def do(a: logical.WritableArray) -> np.ndarray:
            end = len(a)
            more = a.grow()
            rows = a[end:]
            if more:
                (last,) = (region.member for region in a.regions if region.hi[0] == len(a))
                member = next(member for member in a.manifest.members if member.name == last)
                same(rows, a._reading.places.open(member, a.dtype).array[-more:])
            return np.concatenate([self.new[name], rows])

        self.change(name, do)

    @under_way
    @rule(name=name)
    def drop(self, name: str) -> None:
        assert self.t is not None
        if name not in self.new:
            return
        array = self.t[name]
        try:
            self.t.remove(name)
        except logical.LogicalError:
            assert self.is_json
            return
        self.new = {other: rows for other, rows in self.new.items() if other != name}
        self.may_leave = True
        with pytest.raises(ValueError, match="closed"):
            array.append(self.rows(0, 1))

    # ------------------------------------------------------------ reading, looking after

    @rule(name=name, seed=SEEDS)
    def read(self, name: str, seed: int) -> None:
        rng = np.random.default_rng(seed)
        rows = (self.truth if self.t is None else self.new).get(name)
        if rows is None:
            return
        array = self.opened(name) if self.t is None else self.t[name]
        for _ in range(6):
            key = key_of(rng, rows.shape)
            same(array[key], rows[key])
        if len(rows):
            windows = rng.integers(0, len(rows), 5)
            each = int(len(rows) - windows.max())
            same(array.read_windows(windows, each), np.stack([rows[at : at + each] for at in windows]))
            same(np.concatenate([block for _, block in array.iter_chunks()]), rows)

    @precondition(lambda self: self.readers)
    @rule()
    def readers_stay(self) -> None:
        """Readers see what they opened, where there are versions; after refresh() what was committed."""
        for reader, name, expected in self.readers:
            if self.in_memory or self.on_disk:
                same(reader[:], expected)
            if name in self.truth:
                reader.refresh()
                same(reader[:], self.truth[name])
            reader.close()
        self.readers = []

    @precondition(lambda self: self.versions)
    @rule(seed=SEEDS)
    def go_back(self, seed: int) -> None:
        version, arrays = self.versions[seed % len(self.versions)]
        assert logical.names(self.where, snapshot=version) == sorted(arrays)
        for name, expected in arrays.items():
            same(self.opened(name, snapshot=version)[:], expected)

    @precondition(lambda self: self.t is None and (self.in_memory or self.truth))
    @rule()
    def prune(self) -> None:
        logical.prune(self.where)
        self.may_leave = False
        self.check_committed()


def test_random_transactions(record_property: Callable[[str, object], None]) -> None:
    checks = [HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much]
    how = settings(
        max_examples=MODELS,
        stateful_step_count=40,
        deadline=None,
        database=None,
        suppress_health_check=checks,
    )
    run_state_machine_as_test(LogicalArrays, settings=how)
    record_property("runs of random transactions", MODELS)
