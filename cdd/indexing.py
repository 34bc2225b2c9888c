"""NumPy's indexing, reduced to the rows that must be read.

A key is split into those rows and a rest that NumPy applies to them once they are in memory; so NumPy itself
decides what a key means and what its result looks like.
"""

import operator
from typing import Any, NamedTuple

import numpy as np

from cdd.dtypes import Array


class Selection(NamedTuple):
    """The rows to read, in this order, and the key to apply to them."""

    rows: range | Array
    rest: tuple[Any, ...]
    stacks: bool  # the results for parts of `rows`, one after the other, are the result for all of them


def select(key: Any, shape: tuple[int, ...]) -> Selection:
    """What `key` needs of an array of this shape. Raises IndexError as NumPy does."""
    keys = [_normal(k) for k in (key if isinstance(key, tuple) else (key,))]
    indexed = sum(_dimensions(k) for k in keys)
    if indexed > len(shape):
        raise IndexError(f"too many indices: the store has {len(shape)} dimensions, {indexed} were indexed")
    if sum(k is Ellipsis for k in keys) > 1:
        raise IndexError("an index can have one ellipsis only")
    is_basic = not any(isinstance(k, np.ndarray) for k in keys)
    for at, k in enumerate(keys):
        if k is Ellipsis and indexed < len(shape):
            return Selection(range(shape[0]), tuple(keys), is_basic and at == 0)
        if _dimensions(k) > 0:
            rows, relative = _split(k, shape)
            stacks = is_basic and at == 0 and isinstance(k, slice)
            return Selection(rows, (*keys[:at], *relative, *keys[at + 1 :]), stacks)
    return Selection(range(shape[0]), tuple(keys), not keys)


def _normal(key: Any) -> Any:
    """A slice, int, None, Ellipsis, or an array of integers or bools."""
    if key is None or key is Ellipsis or isinstance(key, slice):
        return key
    if not isinstance(key, bool | np.bool_):
        try:
            return operator.index(key)
        except TypeError:
            pass
    array = np.asarray(key)
    if array.size == 0 and not isinstance(key, np.ndarray):
        array = array.astype(np.intp)
    if array.dtype.kind not in "iub":
        raise IndexError(
            "indices are integers, slices, ..., None, and arrays of integers or bools, "
            f"not {key!r:.40}" + (f" (an array of {array.dtype})" if isinstance(key, np.ndarray) else "")
        )
    return array


def _dimensions(key: Any) -> int:
    """How many dimensions of the indexed array a key stands for."""
    if key is None or key is Ellipsis:
        return 0
    return key.ndim if isinstance(key, np.ndarray) and key.dtype == bool else 1


def _split(key: Any, shape: tuple[int, ...]) -> tuple[range | Array, tuple[Any, ...]]:
    """The rows that a key of dimension 0 needs, and what selects the same of them once they are read."""
    if isinstance(key, slice):
        return range(shape[0])[key], (slice(None),)
    if isinstance(key, int):
        row = row_number(key, shape[0])
        return range(row, row + 1), (0,)
    others: list[Array] = []
    if key.dtype == bool:
        for axis, (items, size) in enumerate(zip(key.shape, shape, strict=False)):
            if items != size:
                raise IndexError(f"the mask has {items} items along dimension {axis}, the store {size}")
        rows, *others = key.nonzero()
    else:
        rows = row_numbers(key, shape[0])
    return rows.ravel(), (np.arange(rows.size).reshape(rows.shape), *others)


def row_number(row: int, rows: int) -> int:
    """`row` counted from the start, where a negative one counts from the end."""
    found = row + rows if row < 0 else row
    if not 0 <= found < rows:
        raise IndexError(f"row {row} is not within the store's {rows}")
    return found


def row_numbers(numbers: Array, rows: int) -> Array:
    outside = (numbers < -rows) | (numbers >= rows)
    if outside.any():
        raise IndexError(f"row {numbers[outside].flat[0]} is not within the store's {rows}")
    numbers = numbers.astype(np.int64)
    return np.where(numbers < 0, numbers + rows, numbers)
