"""Views of a logical array that compose without reading."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from cdd.compared import ComparedByRows
from cdd.dtypes import Array as NumpyArray
from cdd.dtypes import DType
from cdd.logical.plan import Reading
from cdd.out import out_items


class Lazy(ComparedByRows):
    """A box of a logical array. Indexing it by numbers and slices gives another one; result() reads it.

    np.asarray(view) reads it, too. Numbers count as NumPy's do: negative ones from the view's end.
    """

    def __init__(
        self, reading: Callable[[], Reading], ranges: list[range], dropped: tuple[bool, ...]
    ) -> None:
        """reading() is what the array reads, while it is open. `ranges` has one a dimension of the array, of
        any step; dropped dimensions have one number."""
        self._reading, self._ranges, self._dropped = reading, ranges, dropped

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(
            len(numbers) for numbers, drop in zip(self._ranges, self._dropped, strict=True) if not drop
        )

    @property
    def dtype(self) -> DType:
        return self._reading().manifest.dtype

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def size(self) -> int:
        return math.prod(self.shape)

    @property
    def nbytes(self) -> int:
        return self.size * self.dtype.itemsize

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError("len() of a view of one element")
        return self.shape[0]

    def __repr__(self) -> str:
        return f"<cdd.logical.Lazy, shape {self.shape}, dtype {self.dtype}>"

    def __getitem__(self, key: Any) -> "Lazy":
        keys = list(key) if isinstance(key, tuple) else [key]
        ellipses = [at for at, k in enumerate(keys) if k is Ellipsis]
        if len(ellipses) > 1:
            raise IndexError("an index can have one ellipsis only")
        if len(keys) - len(ellipses) > self.ndim:
            raise IndexError(
                f"too many indices: the view has {self.ndim} dimensions, {len(keys)} were indexed"
            )
        missing = [slice(None)] * (self.ndim - len(keys) + len(ellipses))
        at = ellipses[0] if ellipses else len(keys)
        keys[at : at + len(ellipses)] = missing
        ranges, dropped, waiting = [], [], iter(keys)
        for numbers, drop in zip(self._ranges, self._dropped, strict=True):
            k = 0 if drop else next(waiting)
            if isinstance(k, slice):
                ranges.append(numbers[k])
                dropped.append(False)
            elif isinstance(k, int | np.integer) and not isinstance(k, bool):
                if not -len(numbers) <= k < len(numbers):
                    raise IndexError(f"index {k} is out of bounds for a dimension of {len(numbers)}")
                number = numbers[int(k)]
                ranges.append(range(number, number + 1))
                dropped.append(True)
            else:
                raise IndexError(f"a view is indexed by numbers, slices and ..., not {type(k).__name__}")
        return Lazy(self._reading, ranges, tuple(dropped))

    def result(self, out: Any = None) -> Any:
        """The elements, as a new array; or in `out`, which is returned: as in Array.read()."""
        reading = self._reading()
        forward = [numbers if numbers.step > 0 else numbers[::-1] for numbers in self._ranges]
        counts = tuple(map(len, forward))
        flips = tuple(slice(None, None, 1 if numbers.step > 0 else -1) for numbers in self._ranges)
        is_flipped = any(numbers.step < 0 for numbers in self._ranges)
        if out is None:
            block = reading.read(forward)
            return (block[flips] if is_flipped else block).reshape(self.shape)[()]
        items = out_items(out, self.dtype, self.shape).view(self.dtype)
        if not items.flags.writeable:
            raise ValueError("out is read-only")
        if is_flipped:
            items.reshape(counts)[...] = reading.read(forward)[flips]
        else:
            reading.read(forward, items.reshape(counts))
        return out

    def __array__(self, dtype: npt.DTypeLike | None = None, copy: bool | None = None) -> NumpyArray:
        if copy is False:
            raise ValueError("a view of a logical array cannot become an array without a copy")
        found = np.asarray(self.result())
        return found if dtype is None else found.astype(dtype, copy=False)
