"""NumPy's indexing, reduced to what must be read of each dimension.

A key is split into the numbers that are read of each dimension, and a rest that NumPy applies to the array of
those once it is in memory; so NumPy itself decides what a key means and what its result looks like.
"""

import operator
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any, NamedTuple, TypedDict

import numpy as np

from cdd.arguments import shown
from cdd.dtypes import Array

Cells = tuple[int, int, int, int, int]  # levels [0:2] by [4] and features [2:4] of each row
Pick = int | slice | Sequence[int] | Array | None
Numbers = range | Array  # of one dimension: ascending, none twice

_ALL = slice(None)
_REVERSED = slice(None, None, -1)


class Part(TypedDict, total=False):
    """A part of each row of a book."""

    levels: Pick
    features: Pick


class Selection(NamedTuple):
    """What a key needs of an array.

    picks  the numbers to read, for each dimension: together a box
    rest   the key that makes the result of that box: a slice or number for each dimension, or an array of
           places in it; None and 0-dimensional bools stand between them
    """

    picks: tuple[Numbers, ...]
    rest: tuple[Any, ...]

    @property
    def counts(self) -> tuple[int, ...]:
        """The shape of the box."""
        return tuple(map(len, self.picks))

    @property
    def is_plain(self) -> bool:
        """Whether the box is the result."""
        return len(self.rest) == len(self.picks) and all(k is _ALL for k in self.rest)

    @property
    def is_basic(self) -> bool:
        """Whether the result is a view of the box."""
        return not any(isinstance(k, np.ndarray) for k in self.rest)

    def within(self, begins: Sequence[int], sizes: Sequence[int]) -> tuple[Any, ...]:
        """The key that makes the result of a larger box, in which dimension i starts at begins[i]."""
        boxes = iter(zip(self.picks, begins, sizes, strict=True))
        return tuple(_moved(k, *next(boxes)) if _stands_for_one(k) else k for k in self.rest)


def select(key: Any, shape: tuple[int, ...]) -> Selection:
    """What `key` needs of an array of this shape. Raises IndexError as NumPy does."""
    picks: list[Numbers] = []
    rest: list[Any] = []
    expanded = expanded_key(key if isinstance(key, tuple) else (key,), len(shape))
    for k in expanded:
        if k is None or k is Ellipsis:
            rest.append(k)
        elif isinstance(k, slice):
            numbers = range(shape[len(picks)])[k]
            rest.append(_ALL if numbers.step > 0 else _REVERSED)
            picks.append(numbers if numbers.step > 0 else numbers[::-1])
        elif isinstance(k, int):
            number = row_number(k, shape[len(picks)], _outside(len(picks)))
            rest.append(0)
            picks.append(range(number, number + 1))
        else:
            rest += _add_array(k, shape, picks, _finds_nothing(expanded))
    return Selection(tuple(picks), tuple(_without_idle_list(rest)))


def expanded_key(keys: Sequence[Any], ndim: int) -> list[Any]:
    """The key as slices, ints, arrays and None, which name all dimensions."""
    found: list[Any] = []
    indexed, ellipsis = 0, -1
    for given in keys:
        k = normal(given)
        if k is Ellipsis:
            if ellipsis >= 0:
                raise IndexError("an index can have one ellipsis only")
            ellipsis = len(found)
            continue
        indexed += dimensions(k)
        found.append(k)
    if indexed > ndim:
        raise IndexError(f"too many indices: there are {ndim} dimensions, {indexed} were indexed")
    at = len(found) if ellipsis < 0 else ellipsis
    # An ellipsis that stands for nothing still makes an array of what would be a scalar.
    found[at:at] = [_ALL] * (ndim - indexed) if indexed < ndim else [Ellipsis] * (ellipsis >= 0)
    return found


def normal(key: Any, what: str = "") -> Any:
    """A slice, int, None, Ellipsis, or an array of integers or bools. IndexError for anything else; `what`
    names the dimension in it."""
    if key is None or key is Ellipsis or isinstance(key, slice):
        return key
    if not isinstance(key, bool | np.bool_):
        try:
            return operator.index(key)
        except TypeError:
            pass
    try:
        array = np.asarray(key)
    except ValueError:  # lists of several lengths
        array = np.empty(1, object)
    if array.size == 0 and not isinstance(key, np.ndarray):
        array = array.astype(np.intp)
    if array.dtype.kind in "iub":
        return array
    raise no_index(key, what)


def dimensions(key: Any) -> int:
    """How many dimensions of the indexed array a normal() key stands for."""
    if key is None or key is Ellipsis:
        return 0
    return key.ndim if isinstance(key, np.ndarray) and key.dtype == bool else 1


def no_index(key: Any, what: str = "") -> IndexError:
    if what:
        allowed = f"{what} are picked by a number, a slice, or a list of numbers or bools"
    else:
        allowed = "indices are integers, slices, ..., None, and arrays of integers or bools"
    return IndexError(f"{allowed}, not {shown(key)}")


def _finds_nothing(keys: Sequence[Any]) -> bool:
    """Whether one of the arrays is empty: then NumPy does not look at the numbers of the others."""
    arrays = [k for k in keys if isinstance(k, np.ndarray)]
    return not all(k.any() if k.dtype == bool else k.size for k in arrays)


def _add_array(key: Array, shape: tuple[int, ...], picks: list[Numbers], is_empty: bool) -> list[Any]:
    """Adds the picks of an array of integers or bools; returns the keys that select the same of these."""
    first = len(picks)
    if is_empty and key.dtype != bool:
        picks.append(range(0))
        return [np.zeros(key.shape, np.intp)]
    if key.dtype != bool:
        lists = [row_numbers(key, shape[first], _outside(first))]
    elif key.ndim == 0:
        return [key]  # True or False: of no dimension
    else:
        check_mask(key, shape, first)
        lists = list(key.nonzero())
    found = [_distinct(numbers) for numbers in lists]
    picks += [pick for pick, _ in found]
    return [rest for _, rest in found]


def _outside(dimension: int) -> str:
    return f"index {{}} is out of bounds for axis {dimension} with size {{}}" if dimension else _OF_ROWS


def check_mask(mask: Array, shape: tuple[int, ...], first: int = 0) -> None:
    """IndexError for a mask of another size than the dimensions from `first` on."""
    for dimension, size in enumerate(mask.shape, first):
        if size != shape[dimension]:
            raise IndexError(f"the mask has {size} items along dimension {dimension}, not {shape[dimension]}")


def _distinct(numbers: Array) -> tuple[Numbers, Array]:
    """The distinct numbers in order, and which of them each one is."""
    flat = numbers.ravel()
    if flat.size < 2 or (flat[1:] > flat[:-1]).all():
        found, places = flat, np.arange(flat.size)
    else:
        found, places = np.unique(flat, return_inverse=True)
    if len(found):
        first, last = int(found[0]), int(found[-1])
        step, rest = divmod(last - first, len(found) - 1) if len(found) > 1 else (1, 0)
        if rest == 0 and (step == 1 or (np.diff(found) == step).all()):
            return range(first, last + 1, step), places.reshape(numbers.shape)
    return found, places.reshape(numbers.shape)


def _without_idle_list(rest: list[Any]) -> list[Any]:
    """Leaves out a list of places that has nothing left to do: it alone, in order, none twice."""
    lists = [at for at, k in enumerate(rest) if isinstance(k, np.ndarray)]
    if len(lists) == 1 and not any(isinstance(k, int) for k in rest):
        places = rest[lists[0]]
        if places.ndim == 1 and places.dtype != bool and (places == np.arange(places.size)).all():
            rest[lists[0]] = _ALL
    return rest


def _stands_for_one(key: Any) -> bool:
    """Whether a key of a Selection's rest stands for a dimension of the box."""
    return isinstance(key, slice | int) or (isinstance(key, np.ndarray) and key.dtype != bool)


def _moved(key: Any, pick: Numbers, begin: int, size: int) -> Any:
    """`key` of the picked numbers, as a key of the run of `size` numbers from `begin` on."""
    if len(pick) == size:
        return key
    if isinstance(key, int):
        return int(pick[0]) - begin
    if isinstance(key, np.ndarray):
        return pick[key] - begin if isinstance(pick, np.ndarray) else pick.start - begin + pick.step * key
    if isinstance(pick, np.ndarray):
        return pick - begin
    numbers = pick if key is _ALL else pick[::-1]
    stop = numbers.stop - begin
    return slice(numbers.start - begin, stop if stop >= 0 else None, numbers.step)


# ------------------------------------------------------------ pieces


class Pieces(NamedTuple):
    """A selection of a large box, a piece at a time: for each a selection, and where its result goes in the
    result of shape `flat`, whose items are those of `shape`: dimensions that arrays share are one there."""

    shape: tuple[int, ...]
    flat: tuple[int, ...]
    pieces: Iterator[tuple[Selection, tuple[Any, ...]]]


def in_pieces(selection: Selection, count: int) -> Pieces | None:
    """The selection in pieces of at most `count` numbers of dimension 0; None where it has too few, or a key
    that cannot be cut."""
    picks, rest = selection
    first = next(at for at, k in enumerate(rest) if _stands_for_one(k))
    has_bools = any(isinstance(k, np.ndarray) and k.dtype == bool for k in rest)
    if len(picks[0]) <= count or has_bools or isinstance(rest[first], int):
        return None
    if isinstance(rest[first], slice):
        is_reversed = rest[first] is _REVERSED
        axis, shape = _axis_of(selection, len(picks[0]), lambda n: (range(n), rest))
        return Pieces(shape, shape, _cut_rows(selection, axis, count, is_reversed))
    places = [at for at, k in enumerate(rest) if isinstance(k, np.ndarray | int)]
    shapes = [np.shape(rest[at]) for at in places]
    try:
        lead = np.broadcast_shapes(*shapes)
    except ValueError:
        raise IndexError(
            f"shape mismatch: indexing arrays of shapes {shapes} cannot be broadcast together"
        ) from None
    lists = {at: np.broadcast_to(rest[at], lead).reshape(-1) for at in places}

    def with_points(points: Any, moved: int = 0) -> tuple[Any, ...]:
        cut = {at: numbers[points] - (moved if at == first else 0) for at, numbers in lists.items()}
        return tuple(cut.get(at, k) for at, k in enumerate(rest))

    axis, flat = _axis_of(selection, lists[first].size, lambda n: (picks[0], with_points(slice(n))))
    order = np.argsort(lists[first], kind="stable")
    ends = np.searchsorted(lists[first], range(0, len(picks[0]) + count, count), sorter=order)
    pieces = (
        (
            Selection((picks[0][i * count : (i + 1) * count], *picks[1:]), with_points(points, i * count)),
            (*(_ALL,) * axis, points),
        )
        for i, (a, b) in enumerate(pairwise(ends))
        for points in [order[a:b]]
    )
    return Pieces((*flat[:axis], *lead, *flat[axis + 1 :]), flat, pieces)


def _cut_rows(
    selection: Selection, axis: int, count: int, is_reversed: bool
) -> Iterator[tuple[Selection, tuple[Any, ...]]]:
    rows, *others = selection.picks
    for begin in range(0, len(rows), count):
        end = min(begin + count, len(rows))
        to = slice(len(rows) - end, len(rows) - begin) if is_reversed else slice(begin, end)
        yield Selection((rows[begin:end], *others), selection.rest), (*(_ALL,) * axis, to)


def _axis_of(selection: Selection, size: int, made_of: Any) -> tuple[int, tuple[int, ...]]:
    """Which dimension of the result grows with n of made_of(n) -> (picks of dimension 0, rest), and the
    result's shape where that is `size`."""
    shapes = []
    for n in (1, 2):
        rows, rest = made_of(n)
        box = np.broadcast_to(np.empty((), bool), (len(rows), *selection.counts[1:]))
        shapes.append(box[rest].shape)
    axis = next(at for at, (one, two) in enumerate(zip(*shapes, strict=True)) if one != two)
    return axis, (*shapes[0][:axis], size, *shapes[0][axis + 1 :])


# ------------------------------------------------------------ numbers

_OF_ROWS = "row {} is not within the store's {}"


def row_number(number: int, size: int, outside: str = _OF_ROWS) -> int:
    """`number` counted from the start, where a negative one counts from the end. `outside` is the error's
    text, with places for the number and the size."""
    found = number + size if number < 0 else number
    if not 0 <= found < size:
        raise IndexError(outside.format(number, size))
    return found


def row_numbers(numbers: Array, size: int, outside: str = _OF_ROWS) -> Array:
    """The same for an array of integers."""
    if numbers.size:
        for number in (int(numbers.min()), int(numbers.max())):
            row_number(number, size, outside)
    numbers = numbers.astype(np.int64)
    return np.where(numbers < 0, numbers + size, numbers)
