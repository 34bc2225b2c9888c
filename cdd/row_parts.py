"""What levels= and features= pick of each row of a book: the cells that the core reads, and what of those."""

from collections.abc import Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from cdd.dtypes import Array
from cdd.indexing import Cells, Pick, no_index, normal

_ALL = slice(None)
_REVERSED = slice(None, None, -1)


class Run(NamedTuple):
    """What a key picks along one dimension: range(begin, end, step) holds it, and the key within that."""

    begin: int
    end: int
    step: int
    key: Any

    @property
    def is_whole(self) -> bool:
        """Whether all of the run is picked."""
        return isinstance(self.key, int) or (isinstance(self.key, slice) and self.key == _ALL)

    @property
    def size(self) -> int:
        """How many numbers the run has."""
        return len(range(self.begin, self.end, self.step))

    @property
    def length(self) -> int | None:
        """How many numbers are picked; None for one that has no dimension."""
        if isinstance(self.key, int):
            return None
        if isinstance(self.key, slice):
            return len(range(self.size)[self.key])
        return len(self.key)


class Box(NamedTuple):
    """What is picked of each row of (levels, features)."""

    levels: Run
    features: Run  # step 1: the core has no other

    @property
    def cells(self) -> Cells:
        """What is read."""
        levels, features = self
        return (levels.begin, levels.end, features.begin, features.end, levels.step)

    @property
    def cells_shape(self) -> tuple[int, int]:
        return self.levels.size, self.features.size

    @property
    def is_whole(self) -> bool:
        """Whether all that is read is picked."""
        return self.levels.is_whole and self.features.is_whole

    @property
    def shape(self) -> tuple[int, ...]:
        """Of what is picked."""
        return tuple(size for run in self if (size := run.length) is not None)

    def of(self, cells: Array) -> Array:
        """What is picked of an array of (..., *cells_shape)."""
        return cells[..., self.levels.key, :][..., self.features.key]


def box_of(levels: Pick, features: Pick, row_shape: tuple[int, ...]) -> Box:
    """The smallest box that holds these of rows of (levels, features). Raises IndexError as NumPy does."""
    features_run = run_of(features, row_shape[1], "features")
    if features_run.step > 1:
        begin, end, step, key = features_run
        features_run = Run(begin, end, 1, slice(None, None, step if key == _ALL else -step))
    return Box(run_of(levels, row_shape[0], "levels"), features_run)


def run_of(pick: Pick, size: int, what: str) -> Run:
    """The run of one dimension's key; `what` names the dimension. Raises IndexError as NumPy does."""
    if pick is None:
        return Run(0, size, 1, _ALL)
    if isinstance(pick, list | tuple) and all(type(number) is int for number in pick):
        return _run_of_numbers(pick, size, what)
    key = normal(pick, what)
    if isinstance(key, int):
        number = key + size if key < 0 else key
        if not 0 <= number < size:
            raise IndexError(f"index {key} is not one of {size} {what}")
        return Run(number, number + 1, 1, 0)
    if isinstance(key, slice):
        return _run_of_range(range(size)[key])
    if key is Ellipsis:
        return Run(0, size, 1, _ALL)
    if key.ndim != 1:
        raise no_index(pick, what)
    if key.dtype == bool:
        if len(key) != size:
            raise IndexError(f"the mask has {len(key)} items for {size} {what}")
        key = key.nonzero()[0]
    return _run_of_numbers(key.tolist(), size, what)


def _run_of_range(numbers: range) -> Run:
    if len(numbers) == 0:
        return Run(0, 1, 1, slice(0, 0))
    low, high = sorted((numbers[0], numbers[-1]))
    step = abs(numbers.step) if len(numbers) > 1 else 1
    return Run(low, high + 1, step, _REVERSED if numbers[0] > numbers[-1] else _ALL)


def _run_of_numbers(picked: Sequence[int], size: int, what: str) -> Run:
    """run_of() a list of numbers; without arrays, which take a µs each, where they are equally far apart."""
    for number in picked:
        if not -size <= number < size:
            raise IndexError(f"index {number} is not one of {size} {what}")
    if not picked:
        return _run_of_range(range(0))
    numbers = [number + size if number < 0 else number for number in picked]
    step = numbers[1] - numbers[0] if len(numbers) > 1 else 1
    if step == 0 or any(b - a != step for a, b in pairwise(numbers)):
        low = min(numbers)
        return Run(low, max(numbers) + 1, 1, np.array(numbers) - low)
    return _run_of_range(range(numbers[0], numbers[-1] + (1 if step > 0 else -1), step))
