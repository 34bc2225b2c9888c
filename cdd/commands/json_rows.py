"""Rows of numbers out of JSON lines, each number exactly as the store will hold it.

What is no number, or none that the dtype holds, is an error that names input, row, item and text.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import numpy as np

import cdd
from cdd.commands.pipes import Bytes
from cdd.commands.terminal import ArgumentError
from cdd.commands.text_rows import NAT, WINDOW_BYTES, Array, Blocks, Parsing, as_items
from cdd.packed.storing import lost_in


def json_rows(
    source: Bytes, name: str, dtype: np.dtype[Any] | None, shape: tuple[int, ...] | None, parsing: Parsing
) -> Blocks:
    """Rows of JSON lines: each an array as the row's shape nests it, a number, or an object whose "values" is
    one of them."""
    dtype = dtype or np.dtype(np.float64)
    text = b""
    row, last = 0, False
    while not last:
        found = source.some()
        if found:
            text += found
            if len(text) < WINDOW_BYTES // 8:
                continue
        last = found == b""
        end = len(text) if last else text.rfind(b"\n") + 1
        lines = [line for line in text[:end].split(b"\n") if line and not line.isspace()]
        text = text[end:]
        if lines:
            rows = _array_of_json(lines, row, dtype, shape, parsing, name)
            shape = rows.shape[1:]
            yield rows
            row += len(rows)
        if found is None:
            yield None


def _array_of_json(
    lines: list[bytes],
    first: int,
    dtype: np.dtype[Any],
    shape: tuple[int, ...] | None,
    parsing: Parsing,
    name: str,
) -> Array:
    try:
        text = b"[" + b",".join(lines) + b"]"
        values = [_row_of(one) for one in json.loads(text)]
        if len(values) != len(lines):  # a line of "1, 2" would be two
            raise ValueError
        if b"null" in text and parsing.null is not None:
            values = _with_null(values, _null_of(dtype, parsing.null, name))
        if dtype.kind != "b" and (b"true" in text or b"false" in text) and _has_bool(values):
            raise ValueError
        made = _numbers(values, dtype)
    except (ValueError, TypeError, KeyError, OverflowError):
        _say_what_is_wrong(lines, first, dtype, shape, parsing, name)
        raise
    if shape is not None and made.shape[1:] != shape:
        raise ValueError(f"{name}: row {first} has the shape {made.shape[1:]}, not {shape}")
    flat = made.reshape(-1)
    items, lost = as_items(flat, dtype, parsing.lossy)
    if not len(lost) and not parsing.lossy and flat.dtype.kind == "f":
        large = np.flatnonzero(np.isfinite(flat) & (np.abs(flat) >= 2**53))
        if len(large):
            given = list(_flat(values))
            odd = [type(given[i]) is int and given[i] != int(flat[i]) for i in large.tolist()]
            lost = large[odd]
    if len(lost):
        at = int(lost[0])
        row, item = divmod(at, max(1, made[0].size))
        where = f"{name}: row {first + row}, item {item}"
        hint = ": --lossy rounds it" if dtype.kind not in "iub" else ""
        raise ValueError(f"{where}: {dtype} does not hold {list(_flat(values))[at]}{hint}")
    return items.reshape(made.shape)


def _row_of(one: Any) -> Any:
    return one["values"] if isinstance(one, dict) else one


def _has_bool(values: Any) -> bool:
    return any(type(value) is bool for value in _flat(values))


def _with_null(values: Any, null: Any) -> Any:
    """A row, or rows, with a number where there was null."""
    if isinstance(values, list):
        return [_with_null(value, null) for value in values]
    return null if values is None else values


def _null_of(dtype: np.dtype[Any], null: float, name: str) -> Any:
    """--null as JSON would have it. Times have NaT, whatever is given. Raises ArgumentError for one that the
    dtype does not hold."""
    if dtype.kind in "mM":
        return None
    if dtype.kind in "iub":
        if len(lost_in(np.array([null]), dtype)):
            raise ArgumentError(f"{name}: {dtype} does not hold --null {null:g}")
        return bool(null) if dtype.kind == "b" else int(null)
    return null


def _numbers(values: Any, dtype: np.dtype[Any]) -> Array:
    """Python's numbers as an array, of 64 bits. Raises ValueError for text and null among them."""
    if dtype.kind == "M":
        return np.array(values, "datetime64[ns]")
    if dtype.kind in "ium":
        wide = np.array(values, object)
        if dtype.kind == "m":  # null is NaT
            wide[wide == None] = NAT  # noqa: E711
            values = wide.tolist()
        wide = wide.reshape(-1)
        if any(type(value) is not int for value in wide.tolist()):
            raise ValueError("not all are whole numbers")
        return np.array(values, np.uint64 if dtype.kind == "u" else np.int64)
    made = np.array(values)
    if made.dtype == object and all(type(value) in (int, float) for value in made.reshape(-1).tolist()):
        made = made.astype(np.float64)  # whole numbers beyond 64 bits
    allowed = "b" if dtype.kind == "b" else "iuf"
    if made.size and made.dtype.kind not in allowed:
        raise ValueError("not all are numbers")
    return made if dtype.kind == "b" else made.astype(np.float64)


def _say_what_is_wrong(
    lines: list[bytes],
    first: int,
    dtype: np.dtype[Any],
    shape: tuple[int, ...] | None,
    parsing: Parsing,
    name: str,
) -> None:
    """FormatError for the first line that is no row."""
    for row, line in enumerate(lines, first):
        shown = line.decode(errors="backslashreplace")
        shown = shown if len(shown) <= 60 else f"{shown[:60]} ..."
        try:
            one = _row_of(json.loads(line))
        except KeyError:
            raise cdd.FormatError(f'{name}: row {row} is an object without "values": {shown}') from None
        except ValueError as error:
            raise cdd.FormatError(
                f"{name}: row {row} is no JSON array of numbers: {error}: {shown}"
            ) from None
        if parsing.null is not None:
            one = _with_null(one, _null_of(dtype, parsing.null, name))
        for item, value in enumerate(_flat(one)):
            try:
                _numbers([value], dtype)
            except (ValueError, TypeError, OverflowError):
                hint = ": --null NUMBER takes its place" if value is None else ""
                raise cdd.FormatError(
                    f"{name}: row {row}, item {item}: {json.dumps(value)} is no {dtype}{hint}"
                ) from None
        try:
            found = _numbers(one, dtype).shape
        except (ValueError, TypeError):
            found = None
        if found is None or (shape is not None and found != shape):
            wanted = f"of shape {shape}" if shape is not None else "with equally long parts"
            raise cdd.FormatError(f"{name}: row {row} is no array {wanted}: {shown}")
        shape = found


def _flat(value: Any) -> Iterator[Any]:
    if isinstance(value, list):
        for part in value:
            yield from _flat(part)
    else:
        yield value
