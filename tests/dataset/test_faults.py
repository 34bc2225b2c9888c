"""Each operation fails, or its process stops, at its k-th call of the Directory, for every k: what was
acknowledged is there, columns are equally long, and the next writer goes on."""

import gc
import os
from collections.abc import Callable, Iterator
from contextlib import suppress

import numpy as np
import pytest

import cdd.dataset as datasets
from tests.dataset.faulty import Faulty, StopError

STOPS = int(os.environ.get("CDD_DATASET_STOPS", "300"))
Step = Callable[[Faulty, dict[str, int]], None]


def append(directory: Faulty, known: dict[str, int]) -> None:
    w = datasets.open(directory, "a")
    try:
        for _ in range(2):
            first = len(w)
            w.append(time=np.arange(first, first + 10), x=np.arange(first, first + 10) * 2)
            w.flush()
            known["flushed"] = max(known["flushed"], first + 10)
        known["version"] = int(w.commit("appended"))
        known["rows"] = len(w)
    finally:
        w._let_go()


def modify(directory: Faulty, known: dict[str, int]) -> None:
    with datasets.transaction(directory, "modified") as t:
        t["x"][3] = -1
        t["x"][5:7] = -1
    known["modified"] = 1


def grow_columns(directory: Faulty, known: dict[str, int]) -> None:
    with datasets.transaction(directory) as t:
        t.add_column("y", fill=0.0)
        t.drop_column("y")


def tidy(directory: Faulty, known: dict[str, int]) -> None:
    datasets.expire(directory, keep=1)
    datasets.prune(directory, orphans=True)
    with datasets.transaction(directory) as t:
        t.compact()
    datasets.prune(directory)


def check(directory: Faulty, known: dict[str, int]) -> None:
    ds = datasets.open(directory)
    rows = len(ds)
    assert rows >= known["flushed"]
    assert np.array_equal(ds["time"][:], np.arange(rows))
    wanted = np.arange(rows) * 2
    changed = ds["x"][:]
    if known.get("modified") or (rows > 3 and changed[3] == -1):
        wanted[[3, 5, 6]] = -1
    assert np.array_equal(changed, wanted)
    assert ds.verify().ok
    assert ds.version.number >= known["version"]


@pytest.fixture(autouse=True)
def few_objects_to_look_at() -> Iterator[None]:
    """Writers of processes that stopped are collected as garbage, many times."""
    gc.collect()
    gc.freeze()
    yield
    gc.unfreeze()


STEPS: dict[str, Step] = {"append": append, "modify": modify, "columns": grow_columns, "tidy": tidy}


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # of writers that stopped
@pytest.mark.parametrize("how", ["fails", "fails after", "stops", "stops after"])
@pytest.mark.parametrize("name", STEPS)
def test_every_call(name: str, how: str) -> None:
    at = 0
    step = 1 if os.environ.get("CDD_DATASET_CALLS") or name in ("append", "modify") else 4
    while True:
        at += step
        directory = Faulty()
        known = {"flushed": 0, "version": 0}
        with datasets.open(directory, "w") as w:
            w.append(time=np.arange(20), x=np.arange(20) * 2)
            known["version"] = int(w.commit("made"))
        known["flushed"] = 20
        if name == "tidy":
            modify(directory, known)
        directory.calls, directory.at = 0, at
        directory.after = how.endswith("after")
        if how.startswith("stops"):
            directory.error = StopError
        reached = True
        try:
            STEPS[name](directory, known)
            reached = directory.calls >= at
        except (OSError, StopError, datasets.DatasetError):
            pass
        directory.revive()
        check(directory, known)
        append(directory, known)
        check(directory, known)
        datasets.prune(directory, orphans=True)
        check(directory, known)
        if not reached:
            break
    assert at > 10


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_lives_of_many_stops(record_property: Callable[[str, object], None]) -> None:
    """Processes that stop anywhere, one after the other, in what the ones before left."""
    random = np.random.default_rng(int(os.environ.get("CDD_SEED", "1")))
    stops = 0
    while stops < STOPS:
        directory = Faulty()
        directory.error = StopError
        known = {"flushed": 20, "version": 0}
        with datasets.open(directory, "w") as w:
            w.append(time=np.arange(20), x=np.arange(20) * 2)
            known["version"] = int(w.commit("made"))
        for _ in range(12):
            directory.calls, directory.at = 0, int(random.integers(1, 90))
            directory.after = bool(random.integers(2))
            with suppress(StopError, datasets.DatasetError):
                list(STEPS.values())[random.integers(len(STEPS))](directory, known)
            stops += directory.is_stopped
            directory.revive()
            check(directory, known)
    record_property("stopped places", stops)
