"""Keys of a logical array that cdd.indexing does not know: outer ones, and many scattered points."""

import math
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from cdd.arguments import shown
from cdd.dtypes import Array
from cdd.indexing import Numbers, Selection, expanded_key, select

_ALL = slice(None)


def applied(block: Array, selection: Selection) -> Any:
    """The key's result of the box that was read."""
    return block if selection.is_plain else block[selection.rest]


class Outer(NamedTuple):
    """A key that picks along each dimension for itself: the box, np.ix_ of it, and what drops dimensions."""

    picks: tuple[Numbers, ...]
    lists: tuple[Array, ...] | None  # None: the box is the result
    dropped: tuple[Any, ...]

    def applied(self, block: Array) -> Any:
        return block if self.lists is None else block[self.lists][self.dropped]


def select_outer(key: Any, shape: tuple[int, ...]) -> Outer:
    """select() for outer indexing: lists and masks pick along their own dimension each, as np.ix_ does."""
    keys = [
        k for k in expanded_key(key if isinstance(key, tuple) else (key,), len(shape)) if k is not Ellipsis
    ]
    for k in keys:
        if k is None or (isinstance(k, np.ndarray) and k.ndim != 1):
            raise IndexError(f"outer indexing takes a number, a slice or a list a dimension, not {shown(k)}")
    chosen = [select((k,), (size,)) for k, size in zip(keys, shape, strict=True)]
    picks = tuple(selection.picks[0] for selection in chosen)
    if all(selection.is_plain for selection in chosen):
        return Outer(picks, None, ())
    rests = [selection.rest[0] for selection in chosen]
    lists = [np.atleast_1d(np.arange(len(pick))[rest]) for pick, rest in zip(picks, rests, strict=True)]
    dropped = tuple(0 if isinstance(rest, int) else _ALL for rest in rests)
    return Outer(picks, np.ix_(*lists), dropped)


# ------------------------------------------------------------ many points


class Points(NamedTuple):
    """A key of several lists whose box is large and mostly not wanted: read in pieces of near points."""

    shape: tuple[int, ...]  # of the result
    flat: tuple[int, ...]  # the same with the lists' dimensions as one
    pieces: Iterator[tuple[tuple[Any, ...], Selection]]  # where in the flat result, and what to read for it


def points_of(selection: Selection, itemsize: int, most_bytes: int) -> Points | None:
    """None where one box is as good."""
    rest, box = selection.rest, math.prod(selection.counts)
    if box * itemsize <= most_bytes:
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
    rest = selection.rest
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
        yield (_ALL,) * axis + (points,), Selection(tuple(picks), tuple(key))
