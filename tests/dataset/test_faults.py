"""Each operation fails, or its process stops, at its k-th call of the Directory, for every k: what was
acknowledged is there, columns are equally long, and the next writer goes on."""

import gc
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import cdd.dataset as datasets
from cdd.dataset.collecting.collector import Collector
from cdd.dataset.collecting.tails import TailTable
from cdd.dataset.protocol import extents as ex
from cdd.dataset.protocol import ops
from tests.dataset.faulty import STEPS, Faulty, Known, Left, Recorded, Step, append, make, modify

STOPS = int(os.environ.get("CDD_DATASET_STOPS", "300"))
EVERY = bool(os.environ.get("CDD_DATASET_CALLS"))


@pytest.fixture(autouse=True)
def few_objects_to_look_at() -> Iterator[None]:
    """Datasets that nobody has any more are collected as garbage, many times."""
    gc.collect()
    gc.freeze()
    yield
    gc.unfreeze()


@pytest.fixture(autouse=True)
def column_by_column(monkeypatch: pytest.MonkeyPatch) -> None:
    """Columns are flushed one after the other, and a process may stop after each."""

    def one_by_one(self: Collector, jobs: list[Callable[[], None]]) -> None:
        for job in jobs:
            job()
            if isinstance(self._directory, Recorded):
                self._directory.note()

    monkeypatch.setattr(Collector, "_in_threads", one_by_one)


@pytest.mark.filterwarnings("ignore:column .* was not compacted:RuntimeWarning")
@pytest.mark.parametrize("how", ["fails", "fails after"])
@pytest.mark.parametrize("name", STEPS)
def test_every_call_fails(name: str, how: str) -> None:
    at = 0
    while True:
        at += 1 if EVERY or name in ("append", "modify") else 5
        directory, known = Faulty(), Known()
        make(directory, known)
        if name == "tidy":
            modify(directory, known)
        directory.calls, directory.at = 0, at
        directory.after = how.endswith("after")
        try:
            STEPS[name](directory, known)
            reached = directory.calls >= at
        except (OSError, datasets.DatasetError):
            reached = True
        directory.heal()
        known.check(directory)
        append(directory, known)
        known.check(directory)
        datasets.prune(directory, orphans=True)
        known.check(directory)
        if not reached:
            break
    assert at > 10


def goes_on(left: Left, step: Step) -> None:
    """What a process left is what it must be, and the next one goes on."""
    directory = datasets.MemoryDirectory()
    known = left.to(directory)
    known.check(directory)
    step(directory, known)
    known.check(directory)


@pytest.mark.parametrize("name", STEPS)
def test_a_process_stops_at_every_call(name: str) -> None:
    directory, known = Recorded(), Known()
    make(directory, known)
    if name == "tidy":
        modify(directory, known)
    directory.record(known)
    STEPS[name](directory, known)
    directory.note()
    assert directory.places > 10
    steps = [append, *STEPS.values()] if EVERY else [append]
    for step in steps:
        for left in directory.left:
            goes_on(left, step)


def test_lives_of_many_stops(record_property: Callable[[str, object], None]) -> None:
    """Processes that stop anywhere, one after the other, in what the ones before left. Each may stop at every
    place of its operation: what it leaves there is looked at, and another process goes on."""
    random = np.random.default_rng(int(os.environ.get("CDD_SEED", "1")))
    steps = list(STEPS.values())
    places = 0
    while places < STOPS:
        first, known = Recorded(), Known()
        make(first, known)
        first.record(known)
        first.note()
        left = first.left[-1]
        for _ in range(12):
            directory = Recorded()
            known = left.to(directory)
            known.check(directory)
            directory.record(known)
            steps[random.integers(len(steps))](directory, known)
            directory.note()
            places += directory.places
            for one in directory.left:
                goes_on(one, steps[random.integers(len(steps))])
            left = directory.left[random.integers(len(directory.left))]
    record_property("stopped places", places)


@pytest.mark.parametrize("method", ["write", "flush_now"])
@pytest.mark.parametrize("part", ["values", "ends"])
def test_a_text_that_was_stored_halfway(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, part: str, method: str
) -> None:
    """Its bytes are there, or its end, too: no part of the next text."""
    with datasets.open(tmp_path, "w", clock=None) as w:
        w.append(s=["a", "b"])
        whole = getattr(TailTable, method)

        def full(self: TailTable, *given: Any) -> None:
            if self.name == f"s.{part}":
                raise OSError(28, "no space")
            whole(self, *given)

        with monkeypatch.context() as patch, pytest.raises(OSError, match="no space"):
            patch.setattr(TailTable, method, full)
            w.append(s=["half"])
        w.append(s=["next", "a"])
    assert datasets.open(tmp_path)["s"].text() == ["a", "b", "next", "a"]
    with datasets.open(tmp_path, "a") as w:
        w.append(s=["half", "b"])
    assert datasets.open(tmp_path)["s"].text() == ["a", "b", "next", "a", "half", "b"]


def test_an_append_takes_no_rows_out_of_a_table(tmp_path: Path) -> None:
    with datasets.open(tmp_path, "w") as w:
        w.append(x=np.arange(5))
        w.commit()
        for rows in (4, 0):
            with pytest.raises(datasets.DatasetError, match=f"'' would leave {rows} of its 5 rows"):
                w._commit([ops.Append("", rows)], "", "append")
            with pytest.raises(datasets.DatasetError, match=f"'' would leave {rows} of its 5 rows"):
                w._commit([ops.Roll("", rows, {"x": ex.none()})], "", "roll")
    assert np.array_equal(datasets.open(tmp_path)["x"][:], np.arange(5))
