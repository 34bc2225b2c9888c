"""Commands that look at rows and change nothing: chunks, stats, diff."""

from __future__ import annotations

import argparse
import json
import math
from typing import Any

import numpy as np
import numpy.typing as npt

import cdd
from cdd.commands.sources import Picked, in_dataset, opened
from cdd.commands.terminal import ArgumentError, Commands, Line, complain, for_each, is_of_output

Array = npt.NDArray[Any]


def add(commands: Commands) -> None:
    chunks = commands.add("chunks", _chunks, "Lists the chunks of files: rows, codec, bytes, place.")
    stats = commands.add("stats", _stats, "Least, greatest, mean and deviation of each feature, in one pass.")
    diff = commands.add(
        "diff", _diff, "Compares the rows of two stores; exit status 0 the same, 1 different, 2 trouble."
    )
    for several in (chunks, stats):
        several.add_argument("files", nargs="+", metavar="FILE")
    for one in (chunks, stats, diff):
        one.add_argument("--json", action="store_true", help="one JSON object a line")
    for one in (stats, diff):
        one.add_argument("--quiet", "-q", action="store_true", help="no progress")
    diff.add_argument("file", metavar="A")
    diff.add_argument("other", metavar="B")
    diff.add_argument(
        "--tolerance",
        type=float,
        metavar="T",
        help="items may differ by so much, and NaN equals NaN (default: every bit is the same)",
    )


# ------------------------------------------------------------ chunks


def _chunks(options: argparse.Namespace) -> int:
    return for_each(options.files, _show_chunks, options)


def _show_chunks(path: str, options: argparse.Namespace) -> bool:
    good = True
    if in_dataset(path):
        raise ArgumentError(
            f"{path} is of a dataset, whose rows are in superchunks: python -m cdd info counts them"
        )
    with cdd.open(path, mmap=False) as reader:
        if not options.json:
            print(f"{path}: {reader.nchunks:,} chunks")
            print(
                f"{'chunk':>9} {'first row':>12} {'rows':>9} {'stored':>10} {'raw':>12} {'offset':>14}  codec"
            )
        for number in range(reader.nchunks):
            try:
                one = reader.chunk_infos[number]
            except cdd.CddError as error:
                good = False
                told = {"file": path, "chunk": number, "error": str(error)}
                print(json.dumps(told) if options.json else f"{number:>9} damaged: {error}")
                continue
            if options.json:
                fields = ("start", "stop", "codec", "stored_bytes", "raw_bytes", "offset")
                told = {"file": path, "chunk": number, **{name: getattr(one, name) for name in fields}}
                print(json.dumps(told))
            else:
                sizes = f"{one.stored_bytes:>10,} {one.raw_bytes:>12,} {one.offset:>14,}"
                print(f"{number:>9,} {one.start:>12,} {one.stop - one.start:>9,} {sizes}  {one.codec}")
    return good


# ------------------------------------------------------------ stats


class _Feature:
    """What is known of one feature's items so far. Mean and deviation of parts are joined (Chan et al.), so
    that nothing is lost by large sums."""

    def __init__(self, dtype: np.dtype[Any]) -> None:
        self._dtype = dtype
        self.items = self.nan = self.zero = 0
        self._count = 0
        self._mean = self._squares = 0.0
        self._least: Any = None
        self._most: Any = None

    def add(self, values: Array) -> None:
        self.items += values.size
        if self._dtype.kind in "mM":
            values = values[~np.isnat(values)]
        elif self._dtype.kind not in "biu":
            values = values[values == values]
        self.nan = self.items - self._count - values.size
        if not values.size:
            return
        least, most = values.min(), values.max()
        self._least = least if self._least is None else min(self._least, least)
        self._most = most if self._most is None else max(self._most, most)
        count, before = int(values.size), self._count
        self._count += count
        if self._dtype.kind in "mM":
            return
        self.zero += count - int(np.count_nonzero(values))
        with np.errstate(all="ignore"):
            wide = values.astype(np.float64)
            mean = float(wide.mean())
            squares = float(np.square(wide - mean).sum())
            delta = mean - self._mean
            self._mean += delta * count / self._count
            self._squares += squares + delta * delta * before * count / self._count

    def told(self) -> dict[str, Any]:
        made: dict[str, Any] = {"items": self.items, "nan": self.nan}
        if self._count:
            made |= {"min": _plain(self._least), "max": _plain(self._most)}
            if self._dtype.kind not in "mM":
                made |= {
                    "mean": self._mean,
                    "std": math.sqrt(self._squares / self._count),
                    "zeros": self.zero,
                }
        return made


def _plain(value: Any) -> Any:
    if isinstance(value, np.datetime64 | np.timedelta64):
        return str(value)
    return value.item() if isinstance(value, np.generic) and value.dtype.kind in "biuf" else float(value)


def _stats(options: argparse.Namespace) -> int:
    return for_each(options.files, _show_stats, options)


def _show_stats(path: str, options: argparse.Namespace) -> bool:
    line = Line(path, options.quiet)
    with opened(path) as source:
        dtype, shape = source.dtype, tuple(source.shape)
        if dtype.kind == "c":
            raise TypeError(f"{path} holds {dtype}, which has no order")
        features = [_Feature(dtype) for _ in range(shape[-1] if len(shape) > 1 else 1)]
        done = 0
        for _, block in Picked(source, slice(None)).blocks():
            flat = block.reshape(-1, len(features))
            for number, feature in enumerate(features):
                feature.add(flat[:, number])
            done += len(block)
            line.show(done, shape[0], "rows")
    line.end()
    told = [feature.told() for feature in features]
    if options.json:
        print(json.dumps({"file": path, "shape": shape, "dtype": str(dtype), "features": told}))
        return True
    print(f"{path}: shape {shape}, {dtype}")
    names = ("items", "nan", "min", "max", "mean", "std", "zeros")
    lines = [[_short(values.get(name)) for name in names] for values in told]
    widths = [max(14, *(len(line[i]) for line in lines)) for i in range(len(names))] if lines else [14] * 7
    rows = [("feature", *names), *((str(number), *cells) for number, cells in enumerate(lines))]
    for label, *cells in rows:
        padded = (cell.rjust(width) for cell, width in zip(cells, widths, strict=True))
        print(f"  {label:<8} {' '.join(padded)}")
    return True


def _short(value: Any) -> str:
    if value is None:
        return "-"
    return (
        f"{value:.6g}" if isinstance(value, float) else f"{value:,}" if isinstance(value, int) else str(value)
    )


# ------------------------------------------------------------ diff


def _diff(options: argparse.Namespace) -> int:
    try:
        with opened(options.file) as one, opened(options.other) as other:
            found = _compared(one, other, options)
    except (cdd.CddError, OSError, ValueError, TypeError, ImportError) as error:
        if is_of_output(error):
            raise
        complain(options.other if options.other in str(error) else options.file, error)
        return 2
    if options.json:
        print(json.dumps({"file": options.file, "other": options.other, **found}))
    elif found["same"]:
        print(f"{options.file} and {options.other} are the same: {found['rows']:,} rows")
    else:
        print(f"{options.file} and {options.other} differ: {found['what']}")
    return 0 if found["same"] else 1


def _compared(one: Any, other: Any, options: argparse.Namespace) -> dict[str, Any]:
    if one.dtype != other.dtype:
        return {"same": False, "what": f"dtypes are {one.dtype} and {other.dtype}"}
    if one.shape[1:] != other.shape[1:]:
        return {"same": False, "what": f"rows have the shapes {one.shape[1:]} and {other.shape[1:]}"}
    rows = min(len(one), len(other))
    line = Line(f"{options.file} and {options.other}", options.quiet)
    different = done = 0
    first: tuple[int, str] | None = None
    pairs = zip(Picked(one, slice(rows)).blocks(), Picked(other, slice(rows)).blocks(), strict=True)
    for (begin, a), (_, b) in pairs:
        bad = _differing(a, b, options.tolerance)
        of_rows = bad.reshape(len(bad), -1).any(axis=1)
        different += int(np.count_nonzero(of_rows))
        if first is None and of_rows.any():
            row = int(np.argmax(of_rows))
            at = tuple(int(i) for i in np.argwhere(bad[row])[0]) if bad.ndim > 1 else ()
            place = f", item {at if len(at) > 1 else at[0]}" if at else ""
            first = begin + row, f"row {begin + row}{place}: {a[row][at]} and {b[row][at]}"
        done += len(a)
        line.show(done, rows, "rows")
    line.end()
    if first is not None:
        which = f"{different:,} of {rows:,} rows"
        if len(one) != len(other):
            which = f"{len(one):,} and {len(other):,} rows, {different:,} of the {rows:,} that both have"
        what = f"{which}, the first is {first[1]}"
        return {"same": False, "rows_different": different, "first_row": first[0], "what": what}
    if len(one) != len(other):
        what = f"{len(one):,} and {len(other):,} rows, those that both have are the same"
        return {"same": False, "rows_different": 0, "what": what}
    return {"same": True, "rows": rows}


def _differing(a: Array, b: Array, tolerance: float | None) -> Array:
    """Which items differ: in any bit, or by more than the tolerance."""
    if tolerance is None or a.dtype.kind in "mM":
        if a.dtype.kind == "c":
            parts = np.ascontiguousarray(a).view(a.real.dtype), np.ascontiguousarray(b).view(b.real.dtype)
            return np.asarray(_differing(*parts, None).reshape(*a.shape, 2).any(axis=-1))
        bits = np.dtype(f"u{a.dtype.itemsize}")
        return np.asarray(np.ascontiguousarray(a).view(bits) != np.ascontiguousarray(b).view(bits))
    if a.dtype.kind in "biu":
        greater, less = np.where(a > b, a, b), np.where(a > b, b, a)
        return np.asarray(
            greater.astype(np.uint64) - less.astype(np.uint64) > tolerance
        )  # exact, whatever wraps
    with np.errstate(all="ignore"):
        kind = np.complex128 if a.dtype.kind == "c" else np.float64
        apart = np.abs(a.astype(kind) - b.astype(kind))
        return np.asarray(~((apart <= tolerance) | (a == b) | ((a != a) & (b != b))))
