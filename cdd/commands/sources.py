"""What a command reads rows from: a store, a column of a dataset (DATASET/column), an array of tiles."""

from __future__ import annotations

import errno
import os
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

import cdd
from cdd.arguments import without_zone
from cdd.commands import tiles
from cdd.commands.dataset import is_dataset
from cdd.commands.terminal import ArgumentError

Array = npt.NDArray[Any]
Pick = int | slice | list[int] | None

BLOCK_BYTES = 8 << 20  # of rows that are in memory at once


@contextmanager
def opened(name: str) -> Iterator[Any]:
    """The rows that `name` stands for: a Reader, a dataset's Column or a TileReader.

    Raises ArgumentError for a dataset without a column's name, and what opening them raises.
    """
    found = in_dataset(name)
    if found is not None:
        from cdd import dataset

        with dataset.open(found[0]) as ds:
            yield _column(ds, name, found[1])
    elif tiles.is_tiles(name):
        with cdd.tiles.open(name) as reader:
            yield reader
    else:
        with cdd.open(name) as reader:
            yield reader


def in_dataset(name: str) -> tuple[str, str] | None:
    """(dataset, column) where the path leads into one and is no file in it."""
    path = Path(name)
    if path.is_file():
        return None
    for folder in (path, *path.parents):
        if is_dataset(str(folder)):
            return str(folder), path.relative_to(folder).as_posix().removeprefix(".")
    return None


def check_output(output: str, overwrite: bool, reads: Sequence[str | None]) -> None:
    """What every command asks before it writes to a path. ArgumentError where that is, or lies in, what is
    read; FileExistsError where a file is there and `overwrite` is False; FileNotFoundError for no folder."""
    place = Path(os.path.realpath(output))
    for name in reads:
        if name is None or name == "-":
            continue
        within = in_dataset(name)
        source = Path(os.path.realpath(within[0] if within is not None else name))
        is_same = place.exists() and source.exists() and place.samefile(source)
        if is_same or source in place.parents:
            raise ArgumentError(f"{output} is what is read, or a part of it: it is not replaced")
    if Path(output).is_dir():
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), output)
    if not overwrite and Path(output).is_file():
        raise FileExistsError(errno.EEXIST, "is there already", output)
    if not Path(output).exists() and not place.parent.is_dir():
        raise FileNotFoundError(errno.ENOENT, "there is no such folder", str(place.parent))


def _column(ds: Any, name: str, column: str) -> Any:
    names = _names(ds)
    if not column and len(names) == 1:
        column = names[0]
    if column in names:
        return ds[column]
    what = f"has no column {column!r}" if column else "is a dataset"
    raise ArgumentError(f"{name} {what}: name one of {', '.join(names) or '(it has none)'} after a /")


def _names(ds: Any) -> list[str]:
    """Columns of the dataset's own table and of the others, as paths."""
    return [f"{table}/{key}" if table else key for table in ds.tables for key in _of(ds, table).columns]


def _of(ds: Any, table: str) -> Any:
    return ds[table] if table else ds


# ------------------------------------------------------------ which rows, levels and features


def rows_argument(text: str) -> int | slice:
    """A:B:S as a slice, a single number as that."""
    text = text.strip()
    if not re.fullmatch(r"-?\d+|(-?\d+)?:(-?\d+)?(:(-?\d+)?)?", text):
        raise ValueError(f"rows are A:B or A:B:STEP, or one number, not {text!r}")
    parts = [int(part) if part else None for part in text.split(":")]
    if parts[2:] == [0]:
        raise ValueError(
            f"rows are A:B:STEP with a step of 1 or more, or less than 0 for rows backwards, not {text!r}"
        )
    return slice(*parts) if len(parts) > 1 else int(text)


def pick_argument(text: str) -> Pick:
    """Levels or features: 3, 0:25, 0,5,7."""
    text = text.strip()
    if re.fullmatch(r"-?\d+", text):
        return int(text)
    if re.fullmatch(r"-?\d+(,-?\d+)+", text):
        return [int(part) for part in text.split(",")]
    if re.fullmatch(r"(-?\d+)?:(-?\d+)?(:(-?\d+)?)?", text):
        return slice(*(int(part) if part else None for part in text.split(":")))
    raise ValueError(f"one number, A:B or A,B,C, not {text!r}")


class Picked:
    """Some rows of a source, and of each row some levels and features, in blocks."""

    def __init__(self, source: Any, rows: int | slice, levels: Pick = None, features: Pick = None) -> None:
        self.source, self.levels, self.features = source, levels, features
        if isinstance(rows, int):
            count = len(source)
            if not -count <= rows < count:
                raise ArgumentError(f"row {rows:,} is none of {count:,} rows")
            rows = slice(rows % count, rows % count + 1)
        self.rows = range(*rows.indices(len(source)))
        self.part = {"levels": levels, "features": features} if self._has_part else {}
        if self._has_part and not hasattr(source, "searchsorted"):
            raise ArgumentError("levels and features are picked of books, not of tiles")
        if self._has_part:
            self._check_part()

    @property
    def _has_part(self) -> bool:
        return self.levels is not None or self.features is not None

    def _check_part(self) -> None:
        """ArgumentError where the rows do not have what is picked, and where that is nothing."""
        shape = tuple(self.source.shape[1:])
        try:
            self.empty()
        except (IndexError, ValueError) as error:
            raise ArgumentError(f"rows have the shape {shape}: {error}") from None
        for flag, pick, size in (
            ("--levels", self.levels, shape[0]),
            ("--features", self.features, shape[-1]),
        ):
            if isinstance(pick, slice) and not range(*pick.indices(size)):
                parts = (pick.start, pick.stop, pick.step)
                text = ":".join("" if part is None else str(part) for part in parts).removesuffix(":")
                raise ArgumentError(f"{flag} {text} picks none of {size}")

    def empty(self) -> Array:
        """No rows, of the shape and dtype of those that come."""
        return np.asarray(self.source.read(0, 0, **self.part))

    def blocks(self) -> Iterator[tuple[int, Array]]:
        """(number of its first row, rows) of one block after the other."""
        row_bytes = max(1, self.source.nbytes // max(1, len(self.source)))
        step = max(1, BLOCK_BYTES // row_bytes)
        for begin in range(0, len(self.rows), step):
            numbers = self.rows[begin : begin + step]
            yield numbers[0], self.read(numbers)

    def read(self, numbers: range) -> Array:
        if numbers.step == 1:
            return np.asarray(self.source.read(numbers[0], numbers[-1] + 1, **self.part))
        if hasattr(self.source, "searchsorted"):
            return np.asarray(self.source.read_windows(np.array(numbers), 1, **self.part)[:, 0])
        return np.stack([np.asarray(self.source[number]) for number in numbers])

    def names(self) -> list[str]:
        """A name for each item of a row: value, f2, l24_f0, or i1_i0_i7 where rows have other shapes."""
        shape = tuple(self.source.shape[1:])
        numbers = [np.arange(size) for size in shape]
        if self._has_part and shape:
            levels = numbers[0] if len(shape) > 1 else None
            if levels is not None and self.levels is not None:
                numbers[0] = np.atleast_1d(levels[self.levels])
            if self.features is not None:
                numbers[-1] = np.atleast_1d(numbers[-1][self.features])
        if not shape:
            return ["value"]
        letters = {1: "f", 2: "lf"}.get(len(shape), "i" * len(shape))
        names = [""]
        for letter, of_one in zip(letters, numbers, strict=True):
            names = [f"{name}_{letter}{n}" if name else f"{letter}{n}" for name in names for n in of_one]
        return names


def between(source: Any, clock: Any, first: str | None, last: str | None) -> slice:
    """The rows whose times are within [first, last) of a clock, found by bisection."""
    if len(clock) != len(source):
        raise ArgumentError(f"the times have {len(clock):,} rows, the rows are {len(source):,}")
    if len(clock.shape) != 1 or not hasattr(clock, "searchsorted"):
        raise ArgumentError(f"times are one item a row, not rows of {clock.shape[1:]}")
    begin = 0 if first is None else int(clock.searchsorted(_time(first, clock.dtype)))
    end = len(source) if last is None else int(clock.searchsorted(_time(last, clock.dtype)))
    return slice(begin, max(begin, end))


def _time(text: str, dtype: np.dtype[Any]) -> Any:
    """A time as the clock has it: ISO 8601, or a number where the clock has numbers."""
    try:
        return _parsed_time(text, dtype)
    except ValueError:
        raise ArgumentError(f"{text!r} is no time, as one of {dtype}") from None


def _parsed_time(text: str, dtype: np.dtype[Any]) -> Any:
    if dtype.kind == "M":
        if re.fullmatch(r"-?\d+", text):
            return np.array(int(text), np.int64).view(dtype)[()]
        return np.datetime64(without_zone(text))
    return float(text) if dtype.kind == "f" else int(text)
