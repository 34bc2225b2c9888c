"""What NumPy's index means: the box that must be read, and what NumPy applies to it once it is in memory.

So NumPy itself decides what a key's result looks like, and no more is read than the key needs: each number of
each dimension once, in order.
"""

import math
import operator
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from cdd.arguments import shown
from cdd.dtypes import Array
from cdd.logical.regions import Pick

_ALL = slice(None)
_REVERSED = slice(None, None, -1)


class Selection(NamedTuple):
    """picks: the box, one a dimension. rest: the key of it; None where it is the result as it is."""

    picks: list[Pick]
    rest: tuple[Any, ...] | None

    @property
    def counts(self) -> tuple[int, ...]:
        return tuple(map(len, self.picks))


def select(key: Any, shape: tuple[int, ...]) -> Selection:
    """What `key` needs of an array of this shape. Raises IndexError, TypeError, ValueError as NumPy does."""
    keys = key if isinstance(key, tuple) else (key,)
    picks: list[Pick] = []
    rest: list[Any] = []
    plain = True
    is_points = is_empty = False
    expanded = _expanded(keys, len(shape))
    for k in expanded:
        if k is None or k is Ellipsis:
            rest.append(k)
            plain = False
        elif type(k) is slice:
            numbers = range(shape[len(picks)])[k]
            if numbers.step > 0:
                rest.append(_ALL)
            else:
                numbers = numbers[::-1]
                rest.append(_REVERSED)
                plain = False
            picks.append(numbers)
        elif type(k) is int:
            row = _number(k, shape[len(picks)], len(picks))
            picks.append(range(row, row + 1))
            rest.append(0)
            plain = False
        else:
            if not is_points:  # where one list is empty, NumPy does not look at the numbers of the others
                lists = [other for other in expanded if isinstance(other, np.ndarray)]
                is_empty = not all(other.any() if other.dtype == bool else other.size for other in lists)
            is_points = True
            plain = False
            rest += _add_array(k, shape, picks, is_empty)
    if is_points:
        rest = _without_inverse(rest)
    return Selection(picks, None if plain else tuple(rest))


def select_outer(key: Any, shape: tuple[int, ...]) -> Selection:
    """select(), but lists and masks pick along their own dimension each, as np.ix_ does."""
    keys = _expanded(key if isinstance(key, tuple) else (key,), len(shape))
    chosen = [select((k,), (shape[dim],)) for dim, k in enumerate(_one_a_dimension(keys))]
    picks = [selection.picks[0] for selection in chosen]
    rests = [_ALL if selection.rest is None else selection.rest[0] for selection in chosen]
    if all(rest is _ALL for rest in rests):
        return Selection(picks, None)
    grid = [
        (rest,) if not isinstance(rest, slice) else np.arange(len(pick))[rest]
        for rest, pick in zip(rests, picks, strict=True)
    ]
    scalar = tuple(dim for dim, rest in enumerate(rests) if isinstance(rest, int))
    lists = np.ix_(*(np.atleast_1d(np.asarray(part, np.intp).ravel()) for part in grid))
    dropped = tuple(0 if dim in scalar else _ALL for dim in range(len(shape)))
    return Selection(picks, (_Outer(lists, dropped),))


class _Outer(NamedTuple):
    """The rest of an outer key: np.ix_, then the dimensions of numbers dropped."""

    lists: tuple[Array, ...]
    dropped: tuple[Any, ...]


def _one_a_dimension(keys: Sequence[Any]) -> Sequence[Any]:
    keys = [k for k in keys if k is not Ellipsis]
    for k in keys:
        if k is None or (isinstance(k, np.ndarray) and k.ndim != 1):
            raise IndexError(f"outer indexing takes a number, a slice or a list a dimension, not {shown(k)}")
    return keys


def applied(block: Array, rest: tuple[Any, ...] | None) -> Any:
    """The key's result of the box that was read."""
    if rest is None:
        return block
    if type(rest[0]) is _Outer:
        return block[rest[0].lists][rest[0].dropped]
    return block[rest]


def _expanded(keys: Sequence[Any], ndim: int) -> list[Any]:
    """Slices, ints, arrays, None and ... of no dimension: all dimensions are named."""
    found: list[Any] = []
    indexed, ellipsis = 0, -1
    for k in keys:
        if type(k) is slice or type(k) is int:
            indexed += 1
        elif k is Ellipsis:
            if ellipsis >= 0:
                raise IndexError("an index can have one ellipsis only")
            ellipsis = len(found)
            continue
        elif k is not None:
            k = _normal(k)
            indexed += k.ndim if isinstance(k, np.ndarray) and k.dtype == bool else 1
        found.append(k)
    if indexed > ndim:
        raise IndexError(f"too many indices: the array has {ndim} dimensions, {indexed} were indexed")
    at = len(found) if ellipsis < 0 else ellipsis
    # An ellipsis that stands for nothing still makes an array of what would be a scalar.
    found[at:at] = [_ALL] * (ndim - indexed) if indexed < ndim else [Ellipsis] * (ellipsis >= 0)
    return found


def _normal(key: Any) -> Any:
    """An int, or an array of integers or bools."""
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
    if array.dtype.kind not in "iub":
        allowed = "indices are integers, slices, ..., None, and arrays of integers or bools"
        raise IndexError(f"{allowed}, not {shown(key)}")
    return array


def _number(number: int, size: int, dim: int) -> int:
    found = number + size if number < 0 else number
    if not 0 <= found < size:
        raise IndexError(f"index {number} is out of bounds for axis {dim} with size {size}")
    return found


def _add_array(key: Array, shape: tuple[int, ...], picks: list[Pick], is_empty: bool) -> list[Any]:
    """Adds the picks of an array of integers or bools; returns the keys that select the same of these."""
    first = len(picks)
    if key.dtype != bool:
        pick, rest = _distinct(key, shape[first], first, is_empty)
        picks.append(pick)
        return [rest]
    if key.ndim == 0:
        return [key]  # True or False: NumPy's, of no dimension
    for dim, size in enumerate(key.shape, first):
        if size != shape[dim]:
            raise IndexError(f"the mask has {size} items along axis {dim}, the array {shape[dim]}")
    rests = []
    for dim, numbers in enumerate(key.nonzero(), first):
        pick, rest = _distinct(numbers, shape[dim], dim, is_empty)
        picks.append(pick)
        rests.append(rest)
    return rests


def _distinct(numbers: Array, size: int, dim: int, is_empty: bool) -> tuple[Pick, Array]:
    """The distinct numbers in order, and which of them each one is."""
    if is_empty:
        return range(0), np.zeros(numbers.shape, np.intp)
    low, high = int(numbers.min()), int(numbers.max())
    for number in (low, high):
        _number(number, size, dim)
    numbers = numbers.astype(np.int64)
    if low < 0:
        numbers = np.where(numbers < 0, numbers + size, numbers)
    flat = numbers.ravel()
    if flat.size == 1 or (flat[1:] > flat[:-1]).all():
        found, rest = flat, np.arange(flat.size).reshape(numbers.shape)
    else:
        found, rest = np.unique(flat, return_inverse=True)
        rest = rest.reshape(numbers.shape)
    first, last = int(found[0]), int(found[-1])
    if last - first + 1 == len(found):
        return range(first, last + 1), rest
    return found, rest


def _without_inverse(rest: list[Any]) -> list[Any]:
    """Leaves out a list of numbers that has nothing left to do: it alone, in order, none twice."""
    arrays = [at for at, k in enumerate(rest) if isinstance(k, np.ndarray)]
    if len(arrays) != 1 or any(type(k) is int for k in rest):
        return rest
    k = rest[arrays[0]]
    if k.dtype != bool and k.ndim == 1 and (k == np.arange(k.size)).all():
        rest[arrays[0]] = _ALL
    return rest


# ------------------------------------------------------------ many points


class Points(NamedTuple):
    """A key of several lists whose box is large and mostly not wanted: read in pieces of near points."""

    shape: tuple[int, ...]  # of the result
    flat: tuple[int, ...]  # the same with the lists' dimensions as one
    pieces: Iterator[tuple[tuple[Any, ...], Selection]]  # where in the flat result, and what to read for it


def points_of(selection: Selection, itemsize: int, most_bytes: int) -> Points | None:
    """None where one box is as good."""
    rest, box = selection.rest, math.prod(selection.counts)
    if rest is None or box * itemsize <= most_bytes or type(rest[0]) is _Outer:
        return None
    if any(k is Ellipsis for k in rest):
        return None
    places = [at for at, k in enumerate(rest) if isinstance(k, np.ndarray | int)]
    arrays = [np.asarray(rest[at]) for at in places]
    if sum(k.ndim > 0 for k in arrays) < 2 or any(k.dtype == bool for k in arrays):
        return None
    result = np.broadcast_to(np.empty((), bool), selection.counts)[rest].shape
    if box <= 2 * math.prod(result):
        return None
    lead = np.broadcast_shapes(*(k.shape for k in arrays))
    lists = [np.broadcast_to(k, lead).reshape(-1) for k in arrays]
    adjacent = places == list(range(places[0], places[-1] + 1))
    axis = places[0] if adjacent else 0
    flat = (*result[:axis], math.prod(lead), *result[axis + len(lead) :])
    pieces = _pieces(selection, places, lists, axis, max(1, most_bytes // itemsize))
    return Points(result, flat, pieces)


def _pieces(
    selection: Selection, places: list[int], lists: list[Array], axis: int, most: int
) -> Iterator[tuple[tuple[Any, ...], Selection]]:
    rest = selection.rest or ()
    dims = [sum(k is not None for k in rest[:at]) for at in places]
    whole = math.prod(len(pick) for dim, pick in enumerate(selection.picks) if dim not in dims)
    waiting = [np.lexsort(lists[::-1])]
    while waiting:
        points = waiting.pop()
        found = [np.unique(numbers[points], return_inverse=True) for numbers in lists]
        if len(points) > 1 and whole * math.prod(len(distinct) for distinct, _ in found) > most:
            half = len(points) // 2
            waiting += [points[half:], points[:half]]
            continue
        picks, key = list(selection.picks), list(rest)
        for at, dim, (distinct, inverse) in zip(places, dims, found, strict=True):
            pick = selection.picks[dim]
            picks[dim] = pick.start + distinct * pick.step if isinstance(pick, range) else pick[distinct]
            key[at] = inverse
        yield (_ALL,) * axis + (points,), Selection(picks, tuple(key))
