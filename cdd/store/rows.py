"""Rows as an array: what the readers of stores and of datasets' columns have in common."""

import math
import warnings
from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import Any, NoReturn, TypeVar, Unpack, overload

import numpy as np
import numpy.typing as npt

from cdd import _cdd, arguments, tables
from cdd.compared import ComparedByRows
from cdd.dtypes import Array, DType
from cdd.indexing import Cells, Part, Pick, row_numbers
from cdd.out import out_buffer
from cdd.store import keys
from cdd.store.exact import exact_items
from cdd.store.parts import read_part, row_part

Out = TypeVar("Out")

_WARN_BYTES = 1 << 30  # of rows that become one array
_GATHER_ROWS = 1 << 20  # of one call that picks single rows


class ArrayRows(ComparedByRows, _cdd.Rows, ABC):
    """Rows of one dtype and shape, indexed like a NumPy array: r[5], r[a:b], r[:, 25:30, 0], r[[3, 9, 4]],
    r[mask]."""

    _core: _cdd.Reader | _cdd.Column
    _dtype: DType | None
    _item: DType  # what the core is given: the dtype itself where that has a buffer
    _row_shape: tuple[int, ...]
    _name: Any  # for error texts
    _has_warned = False

    @abstractmethod
    def iter_chunks(self) -> Iterator[tuple[int, Array]]:
        """(number of its first row, rows) of pieces that are read at once."""

    @property
    @abstractmethod
    def _label(self) -> str:
        """What the rows are called in tables."""

    @property
    def is_text(self) -> bool:
        """Whether rows are codes of texts."""
        return False

    def text(self, start: int = 0, stop: int | None = None) -> list[str]:
        """Rows [start, stop) as texts. TypeError where rows are none."""
        raise TypeError(f"{self._name} holds {self.dtype}, no texts")

    @property
    def shape(self) -> tuple[int, ...]:
        """(rows, *shape of a row)"""
        return (self._core.rows, *self._row_shape)

    @property
    def dtype(self) -> DType:
        """dtype of the items. ValueError while it is unknown: nothing was appended yet."""
        return self._fail_unknown() if self._dtype is None else self._dtype

    @property
    def ndim(self) -> int:
        """Dimensions of all rows as an array."""
        return 1 + len(self._row_shape)

    @property
    def size(self) -> int:
        """Items of all rows."""
        return math.prod(self.shape)

    @property
    def itemsize(self) -> int:
        """Bytes of an item."""
        return self.dtype.itemsize

    @property
    def nbytes(self) -> int:
        """Bytes of all rows as an array."""
        return 0 if self._dtype is None else math.prod(self.shape) * self._dtype.itemsize

    def __len__(self) -> int:
        return self._core.rows

    # ------------------------------------------------------------ reading

    def _read_any(self, start: int, stop: int | None, out: Any, levels: Pick, features: Pick) -> Any:
        """read() for what the core does not take as it is: see _cdd.Rows."""
        first, last = self._bounds(start, stop)
        dtype = self.dtype
        if levels is not None or features is not None:

            def read(begin: int, end: int, box: Array, cells: Cells) -> None:
                self._core.read_into(first + begin, first + end, box, cells)

            return read_part(read, dtype, self._item, self._row_shape, (last - first,), levels, features, out)
        if out is None:
            return self._rows(first, last)
        self._core.read_into(first, last, out_buffer(out, dtype))
        return out

    def _bounds(self, start: int, stop: int | None) -> tuple[int, int]:
        rows = self._core.rows
        first = arguments.index("start of read(start, stop, out)", start)  # NumPy's own numbers overflow
        last = rows if stop is None else arguments.index("stop of read(start, stop, out)", stop)
        first += rows if first < 0 else 0
        last += rows if last < 0 else 0
        if not (0 <= first <= rows and 0 <= last <= rows):
            to = "the end" if stop is None else stop
            raise IndexError(f"rows {start} to {to} are not within the store's {rows}")
        if first > last:
            raise IndexError(f"rows {start} to {stop}: they end before they begin")
        return first, last

    def _rows(self, start: int, stop: int) -> Array:
        dtype = self._dtype
        if dtype is None:
            self._fail_unknown()
        out = np.empty((stop - start, *self._row_shape), self._item)
        self._core.read_into(start, stop, out)
        return out if dtype is self._item else out.view(dtype)

    def _fail_unknown(self) -> NoReturn:
        raise ValueError(f"{self._name} has no dtype yet: nothing was appended (refresh() looks again)")

    def _take(self, numbers: range | Array, cells: Cells | None, out: Array | None = None) -> Array:
        """Rows of these numbers, or the cells of them; in `out`, which is long enough, or a new array."""
        dtype = self.dtype
        part = () if cells is None else (cells,)
        if out is None:
            out = np.empty((len(numbers), *row_part(self._row_shape, cells)), self._item)
        out = out[: len(numbers)]
        if isinstance(numbers, range) and (abs(numbers.step) == 1 or len(numbers) < 2):
            if numbers:
                first, last = sorted((numbers[0], numbers[-1]))
                self._core.read_into(first, last + 1, out, *part)
            return out.view(dtype)[:: -1 if numbers.step < 0 else 1]
        for i in range(0, len(numbers), _GATHER_ROWS):
            piece = np.asarray(numbers[i : i + _GATHER_ROWS], dtype=np.int64)
            self._core.read_windows(piece, 1, out[i : i + _GATHER_ROWS, None], *part)
        return out.view(dtype)

    def _get_any(self, key: Any) -> Any:
        """r[key] for what the core does not take as it is: see _cdd.Rows."""
        return keys.get(keys.Rows(self.shape, self.dtype, self._item, self._take), key)

    def __array__(self, dtype: npt.DTypeLike | None = None, copy: bool | None = None) -> Array:
        """All rows. ResourceWarning, once, where that is more than 1 GiB: most who ask do not mean it."""
        if copy is False:
            raise ValueError("a store's rows cannot become an array without a copy")
        if self.nbytes > _WARN_BYTES and not self._has_warned:
            self._has_warned = True
            text = f"all {self.nbytes:,} bytes of {self._name} become an array: r[a:b] reads a part"
            warnings.warn(text, ResourceWarning, stacklevel=2)
        rows = self._rows(0, self._core.rows)
        return rows if dtype is None else rows.astype(dtype, copy=False)

    def to_pandas(self, start: int = 0, stop: int | None = None) -> Any:
        """Rows [start, stop) as a pandas DataFrame. Of wider rows each item is a column of its own, named
        "book.0.1"; "book" is the name of the file, without its ending, or of the column."""
        return tables.to_pandas({self._label: self}, None, start, stop, (self._label,))

    def __arrow_c_stream__(self, requested_schema: object = None) -> Any:
        """All rows for pyarrow.table(r), polars.DataFrame(r) and others, in batches of some MB that are read
        as they are asked for; columns as in to_pandas()."""
        return tables.arrow_stream({self._label: self})

    def __contains__(self, value: object) -> bool:
        """Whether any item equals `value`, or any row where it has the shape of one, as NumPy has it."""
        if np.ndim(value) >= self.ndim:  # type: ignore[arg-type]
            raise TypeError(f"an item or a row of shape {self._row_shape} may be in the store")
        return any(bool(np.any(block == value)) for _, block in self.iter_chunks())

    def __iter__(self) -> Iterator[Any]:
        """The rows, read chunk by chunk."""
        for _, block in self.iter_chunks():
            yield from block

    @overload
    def read_windows(
        self, starts: npt.ArrayLike, rows: int, out: None = None, **part: Unpack[Part]
    ) -> Array: ...
    @overload
    def read_windows(self, starts: npt.ArrayLike, rows: int, out: Out, **part: Unpack[Part]) -> Out: ...
    def read_windows(
        self,
        starts: npt.ArrayLike,
        rows: int,
        out: Any = None,
        *,
        levels: Pick = None,
        features: Pick = None,
    ) -> Any:
        """Many windows in one call: `rows` rows from each start, of shape (len(starts), rows, *row shape).

        Each chunk is read once, in the order of the file, where that pays by as many threads as set_threads()
        allows (in a forked process one, until it calls that itself). Negative starts count from the end; a
        window that is not within the store raises IndexError. out, levels and features are as in read().
        """
        numbers, rows = self._window_numbers(starts, rows)
        dtype = self.dtype
        if levels is not None or features is not None:

            def read(begin: int, end: int, box: Array, cells: Cells) -> None:
                self._core.read_windows(numbers[begin:end], rows, box, cells)

            lead = len(numbers), rows
            return read_part(read, dtype, self._item, self._row_shape, lead, levels, features, out)
        if out is None:
            block = np.empty((len(numbers), rows, *self._row_shape), self._item)
            self._core.read_windows(numbers, rows, block)
            return block.view(dtype)
        self._core.read_windows(numbers, rows, out_buffer(out, dtype))
        return out

    def _window_numbers(self, starts: npt.ArrayLike, rows: int) -> tuple[Array, int]:
        try:
            numbers = np.asarray(starts)
        except ValueError:  # lists of several lengths
            numbers = np.empty((), object)
        if numbers.ndim != 1 or (numbers.size and numbers.dtype.kind not in "iu"):
            raise TypeError(f"starts is a sequence of row numbers, not {arguments.shown(starts)}")
        rows = arguments.size("rows", rows, 0, (1 << 63) - 1)
        numbers = row_numbers(numbers, self._core.rows)
        if rows > self._core.rows and numbers.size:
            raise IndexError(f"windows of {rows} rows are not within the store's {self._core.rows}")
        return numbers, rows

    def _item_dtype(self) -> DType:
        """What the core is given: the dtype itself where that has a buffer."""
        return self._fail_unknown() if self._dtype is None else self._item

    def searchsorted(self, values: npt.ArrayLike, side: str = "left") -> Any:
        """As np.searchsorted(rows, values, side), of rows of one item that do not decrease: an int for a
        single value, else int64 of the values' shape. Rows are integers, bool, float32, float64 or times:
        TypeError for others.

        Once warm it reads one chunk for a value. Values are compared as the rows' dtype has them: TypeError
        or ValueError for one that it cannot have exactly.
        """
        if side not in ("left", "right"):
            raise ValueError(f'side is "left" or "right", not {side!r}')
        if self._row_shape:
            raise ValueError(
                f"only rows of one item are searched, these are {arguments.shape_of_rows(self._row_shape)}"
            )
        if self.dtype.kind not in "biufmM" or self.dtype == np.float16:
            raise TypeError(
                f"rows of {self.dtype} are not searched: integers, float32, float64 and times are"
            )
        return self._search(sought_items(np.asarray(values), self.dtype), side == "right")

    def _search(self, items: Array, is_right: bool) -> Any:
        """searchsorted() of items of the rows' dtype, of any shape."""
        if items.ndim == 0:  # NumPy would take longer than the look-up
            return self._core.search(items.view(self._item), is_right, None)
        flat = np.ascontiguousarray(items).reshape(-1).view(self._item)
        places = np.empty(items.shape, np.int64)
        self._core.search(flat, is_right, places)
        return places


def sought_items(given: Array, dtype: DType) -> Array:
    """Values that are looked for, as items of a dtype. Raises TypeError or ValueError where it lacks one."""
    found = exact_items(given, dtype)
    if dtype.kind in "mM" and np.isnat(found).any():
        raise ValueError("NaT has no place among times")
    return found
