"""What test_model.py is made of: places, members elsewhere, rows that break off, random keys."""

import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import cdd

zarr = pytest.importorskip("zarr")
icechunk = pytest.importorskip("icechunk")


class BrokenError(Exception):
    """What a block, or a source of rows, raises here."""


class Breaks:
    """Rows that break off while they are copied."""

    def __init__(self, rows: np.ndarray) -> None:
        self.shape, self.dtype = rows.shape, rows.dtype

    def __getitem__(self, key: Any) -> np.ndarray:
        raise BrokenError


def made_place(place: str, folder: Path) -> Any:
    """What transaction() and open() take; a repository on disk or a JSON file is not there yet."""
    where = folder / ("a.json" if place == "json" else "place")
    if place == "in memory":
        return icechunk.Repository.create(icechunk.in_memory_storage())
    if place == "group":
        return zarr.create_group(where).create_group("inner")
    if place == "store":
        zarr.create_group(where)
    return where


def made_member(kind: str, rows: np.ndarray, path: Path, group: Any = None) -> Any:
    """An array that is there already, with these rows: what append_member() or append_virtual() takes."""
    if kind == "virtual":
        path = path.with_suffix(".npy")
        np.save(path, rows)
        os.utime(path, (1e9, 1e9))  # icechunk's checksums are times of whole seconds
        return path
    if kind == "column":
        with cdd.dataset.open(path, "w") as ds:
            ds.append(x=rows)
        return path
    if kind == "cdd":
        cdd.save(path, rows)
        return path
    if kind == "inside" and group is not None:
        member = group.create_array(path.name, shape=rows.shape, dtype=rows.dtype, overwrite=True)
    else:
        member = zarr.create_array(path, shape=rows.shape, dtype=rows.dtype)
    member[...] = rows
    return member


def key_of(rng: np.random.Generator, shape: tuple[int, ...]) -> Any:
    """A key that NumPy takes: numbers, slices of any step, and at most one list or mask."""
    parts: list[Any] = []
    has_list = False
    for size in shape[: int(rng.integers(1, len(shape) + 1))]:
        sort = rng.choice(["all", "number", "slice", "slice", "list", "mask"])
        if sort == "number" and size:
            parts.append(int(rng.integers(-size, size)))
        elif sort == "slice":
            start, stop = rng.integers(-size - 2, size + 3, 2).tolist()
            parts.append(slice(start, stop, int(rng.choice([1, 1, 2, -1, -3]))))
        elif sort == "list" and size and not has_list:
            parts.append(rng.integers(-size, size, rng.integers(0, 6)))
            has_list = True
        elif sort == "mask" and not has_list:
            parts.append(rng.random(size) < 0.5)
            has_list = True
        else:
            parts.append(slice(None))
    return parts[0] if len(parts) == 1 and rng.random() < 0.5 else tuple(parts)


def same(found: Any, expected: Any) -> None:
    left, right = np.asarray(found), np.asarray(expected)
    assert left.shape == right.shape
    assert left.dtype == right.dtype
    assert left.tobytes() == right.tobytes()
