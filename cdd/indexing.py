"""NumPy's indexing, reduced to the rows, levels and features that must be read.

A key is split into these and a rest that NumPy applies to them once they are in memory; so NumPy itself
decides what a key means and what its result looks like.
"""

import operator
from collections.abc import Sequence
from itertools import pairwise
from typing import Any, NamedTuple, TypedDict

import numpy as np

from cdd.arguments import shown
from cdd.dtypes import Array

Cells = tuple[int, int, int, int]  # levels [0:2] and features [2:4] of each row
Pick = int | slice | Sequence[int] | Array | None


class Part(TypedDict, total=False):
    """A part of each row of a book."""

    levels: Pick
    features: Pick


class Selection(NamedTuple):
    """The rows to read, in this order, which cells of them, and the key to apply to these."""

    rows: range | Array
    rest: tuple[Any, ...]
    cells: Cells | None  # None: all
    stacks: bool  # the results for parts of `rows`, one after the other, are the result for all of them

    @property
    def thins(self) -> bool:
        """Whether `rest` leaves out some of what is read."""
        return any(isinstance(k, slice) and k != slice(None) for k in self.rest)


class Run(NamedTuple):
    """What a key picks along one dimension: the run [begin, end) that holds it, and the key within that."""

    begin: int
    end: int
    key: Any

    @property
    def is_whole(self) -> bool:
        """Whether all of the run is picked."""
        return isinstance(self.key, int) or (isinstance(self.key, slice) and self.key == slice(None))


def run_of(pick: Pick, size: int, what: str) -> Run:
    """The run of one dimension's key; `what` names the dimension. Raises IndexError as NumPy does."""
    if pick is None:
        return Run(0, size, slice(None))
    if isinstance(pick, list | tuple) and all(type(number) is int for number in pick):
        return _run_of_numbers(pick, size, what)
    key = _normal(pick, what)
    if isinstance(key, int):
        number = key + size if key < 0 else key
        if not 0 <= number < size:
            raise IndexError(f"index {key} is not one of {size} {what}")
        return Run(number, number + 1, 0)
    if isinstance(key, slice):
        numbers = range(size)[key]
        if len(numbers) == 0:
            return Run(0, 1, slice(0, 0))
        low, high = sorted((numbers[0], numbers[-1]))
        return Run(low, high + 1, slice(None) if numbers.step == 1 else slice(None, None, numbers.step))
    if key is Ellipsis:
        return Run(0, size, slice(None))
    if key.ndim != 1:
        raise _no_index(pick, what)
    if key.dtype == bool:
        if len(key) != size:
            raise IndexError(f"the mask has {len(key)} items for {size} {what}")
        key = key.nonzero()[0]
    return _run_of_numbers(key.tolist(), size, what)


def _run_of_numbers(picked: Sequence[int], size: int, what: str) -> Run:
    """run_of() a list of numbers; without arrays, which take a µs each, where they are equally far apart."""
    for number in picked:
        if not -size <= number < size:
            raise IndexError(f"index {number} is not one of {size} {what}")
    if not picked:
        return Run(0, 1, slice(0, 0))
    numbers = [number + size if number < 0 else number for number in picked]
    low, high = min(numbers), max(numbers)
    step = numbers[1] - numbers[0] if len(numbers) > 1 else 1
    if step == 0 or any(b - a != step for a, b in pairwise(numbers)):
        return Run(low, high + 1, np.array(numbers) - low)
    return Run(low, high + 1, slice(None) if step == 1 else slice(None, None, step))


def select(key: Any, shape: tuple[int, ...]) -> Selection:
    """What `key` needs of an array of this shape. Raises IndexError as NumPy does."""
    rows, rest, stacks = _select_rows(key, shape)
    runs = [Run(0, size, slice(None)) for size in shape[1:]]
    keys = list(rest)
    dimension = 0
    for at, k in enumerate(keys):
        if k is Ellipsis:
            dimension = len(shape) - sum(_dimensions(k) for k in keys[at + 1 :])
            continue
        if dimension > 0 and len(shape) <= 3 and isinstance(k, int | slice):
            runs[dimension - 1] = run_of(k, shape[dimension], f"in dimension {dimension}")
            keys[at] = runs[dimension - 1].key
        dimension += _dimensions(k)
    if all(run.end - run.begin == size for run, size in zip(runs, shape[1:], strict=True)):
        return Selection(rows, tuple(keys), None, stacks)
    runs.append(Run(0, 1, 0))  # the features of rows that are levels only
    return Selection(rows, tuple(keys), (runs[0].begin, runs[0].end, runs[1].begin, runs[1].end), stacks)


def _select_rows(key: Any, shape: tuple[int, ...]) -> tuple[range | Array, tuple[Any, ...], bool]:
    """Selection's rows, rest and stacks, for whole rows."""
    keys = [_normal(k) for k in (key if isinstance(key, tuple) else (key,))]
    indexed = sum(_dimensions(k) for k in keys)
    if indexed > len(shape):
        raise IndexError(f"too many indices: the store has {len(shape)} dimensions, {indexed} were indexed")
    if sum(k is Ellipsis for k in keys) > 1:
        raise IndexError("an index can have one ellipsis only")
    is_basic = not any(isinstance(k, np.ndarray) for k in keys)
    for at, k in enumerate(keys):
        if k is Ellipsis and indexed < len(shape):
            return range(shape[0]), tuple(keys), is_basic and at == 0
        if _dimensions(k) > 0:
            rows, relative = _split(k, shape)
            stacks = is_basic and at == 0 and isinstance(k, slice)
            return rows, (*keys[:at], *relative, *keys[at + 1 :]), stacks
    return range(shape[0]), tuple(keys), not keys


def _no_index(key: Any, what: str) -> IndexError:
    if not what:
        allowed = "indices are integers, slices, ..., None, and arrays of integers or bools"
    else:
        allowed = f"{what} are picked by a number, a slice, or a list of numbers or bools"
    return IndexError(f"{allowed}, not {shown(key)}")


def _normal(key: Any, what: str = "") -> Any:
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
        raise _no_index(key, what)
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
