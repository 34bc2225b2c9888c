"""Repair where an index does not tell all, and of files of a newer format: no whole row goes."""

import warnings
from pathlib import Path

import numpy as np
import pytest

import cdd
import cdd.dataset as datasets
from tests.dataset.test_repair import ROWS, WHOLE, collected, end_of_header, hit_chunk, superchunk, tail

SLOTS = 22  # bytes of a block of the index before the first; each has 32


@pytest.mark.parametrize("is_tail", [True, False])
@pytest.mark.parametrize("is_chunk_lost", [True, False])
def test_neighbouring_slots_of_an_index(tmp_path: Path, is_tail: bool, is_chunk_lost: bool) -> None:
    """Chunks whose places no slot tells are searched for; those behind them are whole."""
    path = tmp_path / "set"
    with datasets.open(path, "w", columns={"x": {"chunk_rows": 8}}) as w:
        for start in range(0, 200, 8):
            w.append(time=np.arange(start, start + 8), x=np.arange(start, start + 8) ** 3)
            w.flush()
    if not is_tail:
        with datasets.transaction(path) as t:
            t.trim(199)
    file = superchunk(path, "x", 1)
    lost = hit_chunk(file, 3) if is_chunk_lost else (0, 0)
    data = bytearray(file.read_bytes())
    slots = end_of_header(data) + SLOTS
    data[slots + 2 * 32 : slots + 6 * 32] = bytes(4 * 32)
    file.write_bytes(data)
    rows = len(datasets.open(path))
    report = datasets.repair(path)
    assert [(one.start, one.stop) for one in report.lost] == [lost] * is_chunk_lost
    kept = np.delete(np.arange(rows), slice(*lost))
    ds = datasets.open(path)
    assert np.array_equal(ds["x"][:], kept**3)
    assert np.array_equal(ds["time"][:], kept)
    assert {one.suffix for one in file.parent.iterdir()} == {".cdd"}


def test_in_memory_too() -> None:
    place = datasets.MemoryDirectory()
    with datasets.open(place, "w") as w:
        w.append(WHOLE)
    place.delete("data/x/__1__.cdd")
    report = datasets.repair(place, fill={"x": 1.0})
    assert [(lost.start, lost.stop) for lost in report.lost] == [(0, ROWS)]
    assert (datasets.open(place)["x"][:] == 1).all()


def test_neighbouring_slots_in_memory() -> None:
    """There is no search of files in memory: all whose place the index tells is kept."""
    place = datasets.MemoryDirectory()
    with datasets.open(place, "w", columns={"x": {"chunk_rows": 8}}) as w:
        for start in range(0, 200, 8):
            w.append(time=np.arange(start, start + 8), x=np.arange(start, start + 8) ** 3)
            w.flush()
    data = bytearray(place.read("data/x/__1__.cdd"))
    slots = end_of_header(data) + SLOTS
    data[slots + 2 * 32 : slots + 6 * 32] = bytes(4 * 32)
    place.delete("data/x/__1__.cdd")
    place.put_store("data/x/__1__.cdd", bytes(data))
    report = datasets.repair(place)
    assert [(one.start, one.stop) for one in report.lost] == [(16, 48)]
    assert np.array_equal(datasets.open(place)["x"][:], np.delete(np.arange(200), slice(16, 48)) ** 3)


@pytest.mark.parametrize("is_tail", [True, False])
def test_a_file_of_a_newer_format_is_not_damaged(tmp_path: Path, is_tail: bool) -> None:
    """Others are read, and it can be dropped; repair takes no rows of it for lost."""
    path = collected(tmp_path / "set")
    file = superchunk(path, "x", tail(path, "x") if is_tail else 1)
    data = bytearray(file.read_bytes())
    data[4] ^= 2  # the version of the format
    file.write_bytes(data)
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        ds = datasets.open(path)
    assert [str(one.message).count("has format version 3") for one in told] == [1] * is_tail
    assert np.array_equal(ds["book"][:], WHOLE["book"])
    with pytest.raises(cdd.UnsupportedError, match="this library reads version 1"):
        ds["x"][:]
    version = ds.version.number
    with pytest.raises(cdd.UnsupportedError, match="this library reads version 1"):
        datasets.repair(path)
    if is_tail:
        with (
            pytest.raises(cdd.UnsupportedError, match="this library reads version 1"),
            datasets.open(path, "a") as w,
        ):
            w.append({name: array[-1:] for name, array in WHOLE.items()})
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        assert datasets.open(path).version.number == version
    with datasets.transaction(path) as t:
        t.drop_column("x")
    ds = datasets.open(path)
    assert np.array_equal(ds["book"][:], WHOLE["book"])
    assert file.read_bytes() == data
