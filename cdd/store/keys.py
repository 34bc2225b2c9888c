"""r[key] for keys that the core does not take as they are: rows read, and a rest that NumPy applies to them.

A key of few rows costs what reading them and letting NumPy pick costs. One of many reads no more levels and
features than it needs, in pieces, so that beside the result there is never more than one of them.
"""

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from cdd.dtypes import Array, DType
from cdd.indexing import (
    Cells,
    Numbers,
    Selection,
    check_mask,
    in_pieces,
    normal,
    row_number,
    row_numbers,
    select,
)
from cdd.store.parts import PIECE_BYTES, row_part

_NEAR_BYTES = 1 << 20  # of whole rows: reading parts of them would save less than finding out which

_ALL = slice(None)


class Rows(NamedTuple):
    """An array as its rows are read: take(numbers, cells, out) -> an array of (numbers, *part of a row).

    Numbers are in any order, maybe of negative step, maybe twice. `out` is of dtype `item` and long enough,
    or None.
    """

    shape: tuple[int, ...]
    dtype: DType
    item: DType
    take: Callable[[range | Array, Cells | None, Array | None], Array]

    def bytes_of(self, numbers: int) -> int:
        return numbers * math.prod(self.shape[1:]) * self.dtype.itemsize


def get(rows: Rows, key: Any) -> Any:
    """rows[key] as NumPy has it, an array of its own. Raises IndexError as NumPy does."""
    keys = key if type(key) is tuple else (key,)
    first = keys[0] if keys else Ellipsis
    if not isinstance(first, slice):
        first = normal(first)
    if isinstance(first, slice):
        numbers: range | Array = range(rows.shape[0])[first]
        lead: tuple[Any, ...] = (_ALL,)
    elif isinstance(first, int):
        row = row_number(first, rows.shape[0])
        numbers, lead = range(row, row + 1), (0,)
    elif isinstance(first, np.ndarray) and first.ndim > 0 and (first.dtype != bool or first.ndim == 1):
        if first.dtype == bool:
            check_mask(first, rows.shape)
            first = first.nonzero()[0]
        found = row_numbers(first, rows.shape[0])
        numbers, lead = found.reshape(-1), (np.arange(found.size).reshape(found.shape),)
    elif isinstance(first, np.ndarray) and first.ndim > 1 and first.dtype == bool and _are_basic(keys[1:]):
        return _masked(rows, first, keys[1:])
    else:
        return _selected(rows, select(key, rows.shape))
    if len(keys) == 1:
        block = rows.take(numbers, None, None)
        return (
            block.reshape(*lead[0].shape, *rows.shape[1:]) if isinstance(lead[0], np.ndarray) else block[lead]
        )
    if rows.bytes_of(len(numbers)) > _NEAR_BYTES:
        return _selected(rows, select(key, rows.shape))
    return _own(rows.take(numbers, None, None)[lead + keys[1:]], rows.bytes_of(len(numbers)))


def _own(found: Any, block_bytes: int) -> Any:
    """A small part that would keep all of its block alive is copied."""
    if isinstance(found, np.ndarray) and found.base is not None and 2 * found.nbytes < block_bytes:
        return found.copy()
    return found


def _are_basic(keys: tuple[Any, ...]) -> bool:
    return all(k is Ellipsis or isinstance(k, slice) for k in keys)


def _masked(rows: Rows, mask: Array, rest: tuple[Any, ...]) -> Any:
    """The items of a mask of rows and levels. Its places would take more memory than the items, so rows are
    read in order and the mask applied to each piece, where it picks more than a few."""
    if mask.ndim + sum(k is not Ellipsis for k in rest) > len(rows.shape):
        return _selected(rows, select((mask, *rest), rows.shape))  # says what is wrong
    check_mask(mask, rows.shape)
    count = int(np.count_nonzero(mask))
    if count * mask.ndim * mask.itemsize * 8 <= _NEAR_BYTES:
        return _selected(rows, select((mask, *rest), rows.shape))
    one = np.broadcast_to(np.empty((), rows.dtype), (1,) * mask.ndim + rows.shape[mask.ndim :])
    out = np.empty((count, *one[(np.ones((1,) * mask.ndim, bool), *rest)].shape[1:]), rows.dtype)
    step, done = max(1, PIECE_BYTES // rows.bytes_of(1)), 0
    piece = np.empty((step, *rows.shape[1:]), rows.item)
    for begin in range(0, len(mask), step):
        some = mask[begin : begin + step]
        if found := int(np.count_nonzero(some)):
            out[done : done + found] = rows.take(range(begin, begin + len(some)), None, piece)[(some, *rest)]
            done += found
    return out


def _selected(rows: Rows, selection: Selection) -> Any:
    cells, begins, sizes = _box_of(selection.picks[1:], rows.shape[1:])
    row_bytes = math.prod(sizes) * rows.dtype.itemsize
    count = max(1, PIECE_BYTES // row_bytes)
    if math.prod(selection.counts) == 0:
        return np.empty(selection.counts, rows.dtype)[selection.rest]

    def read(part: Selection, out: Array | None = None) -> Any:
        rest = part.within((0, *begins), (len(part.picks[0]), *sizes))
        return rows.take(part.picks[0], cells, out).reshape(-1, *sizes)[rest]

    thins = not selection.is_basic or _result_items(selection) < math.prod(selection.counts[:1] + sizes)
    pieces = in_pieces(selection, count) if thins else None
    if pieces is None:
        return _own(read(selection), len(selection.picks[0]) * row_bytes)
    out = np.empty(pieces.flat, rows.dtype)
    piece = np.empty((count, *row_part(rows.shape[1:], cells)), rows.item)
    for part, to in pieces.pieces:
        out[to] = read(part, piece)
    return out.reshape(pieces.shape)


def _result_items(selection: Selection) -> int:
    """Of a selection whose result is a view of its box."""
    return int(np.broadcast_to(np.empty((), bool), selection.counts)[selection.rest].size)


def _box_of(
    picks: tuple[Numbers, ...], row_shape: tuple[int, ...]
) -> tuple[Cells | None, tuple[int, ...], tuple[int, ...]]:
    """The smallest box of a row that cells can be and that holds the picks: (cells, where it begins in each
    dimension, how long it is). The core has levels, a row's first dimension, equally far apart, and
    features, all others as one: so features of more than one dimension are a run only where the later ones
    are whole."""
    begins, sizes = [], []
    is_cut = False
    level_step = picks[0].step if picks and isinstance(picks[0], range) else 1
    for dimension, (pick, size) in enumerate(zip(picks, row_shape, strict=True)):
        begin, end = (0, size) if is_cut or len(pick) == 0 else (int(pick[0]), int(pick[-1]) + 1)
        begins.append(begin)
        sizes.append(len(range(begin, end, 1 if dimension > 0 else level_step)))
        is_cut = is_cut or (dimension > 0 and end - begin > 1)
    if tuple(sizes) == row_shape:
        return None, tuple(begins), tuple(sizes)
    feature = 0
    for begin, size in zip(begins[1:], row_shape[1:], strict=True):
        feature = feature * size + begin
    end = begins[0] + (sizes[0] - 1) * level_step + 1
    cells = (begins[0], end, feature, feature + math.prod(sizes[1:]), level_step)
    return cells, tuple(begins), tuple(sizes)
