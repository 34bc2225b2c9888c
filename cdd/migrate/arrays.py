"""Arrays in files of their own, and in HDF5 and .npz files: each a source of one column."""

import math
import tempfile
import zipfile
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np

from cdd.dtypes import Array, DType
from cdd.migrate.source import ArraySource, column_kind, digest, need, plain_attrs, stamp
from cdd.store.reader import Reader

_MOST_HEADER = 1 << 20


class _OfOneFile(ArraySource):
    """What array formats in one file share."""

    def __init__(self, path: Path, inner: str = "") -> None:
        self.path = path
        self.inner = inner
        self.name = f"{path}::{inner}" if inner else str(path)
        self.files = (path,)

    def _is(self, key: str, dtype: DType, shape: Any, attrs: Any = None) -> None:
        self.columns = {key: column_kind(self.name, dtype, shape, attrs or {})}
        self.rows = int(shape[0])

    def fingerprint(self) -> str:
        kinds = [(key, str(kind.dtype), kind.row_shape) for key, kind in self.columns.items()]
        return digest([self.inner, self.rows, kinds, stamp(self.path)])


class NpySource(_OfOneFile):
    """A .npy file, in either order of memory. It is mapped."""

    def __init__(self, path: Path, inner: str = "") -> None:
        super().__init__(path)
        try:
            self._array = np.load(path, mmap_mode="r", allow_pickle=False)
        except ValueError as error:
            raise ValueError(f"{path}: {error}") from None
        self._is(path.stem, self._array.dtype, self._array.shape)

    def read(self, start: int, stop: int) -> Array:
        return np.array(self._array[start:stop], order="C")

    def close(self) -> None:
        del self._array


class RawSource(_OfOneFile):
    """Items of one dtype and nothing else, as np.ndarray.tofile() and memory-mapped collectors write them."""

    def __init__(self, path: Path, dtype: Any, row_shape: tuple[int, ...] | None) -> None:
        super().__init__(path)
        if dtype is None:
            raise ValueError(f"{path} says nothing of what it holds: give dtype= and row_shape=")
        item = np.dtype(dtype)
        row_shape = tuple(row_shape or ())
        if min(row_shape, default=1) < 1:
            raise ValueError(f"{path}: row_shape is {row_shape}, each of its sizes is 1 or more")
        column_kind(str(path), item, (0, *row_shape), {})
        size, row_bytes = path.stat().st_size, item.itemsize * math.prod(row_shape)
        if row_bytes == 0 or size % row_bytes:
            raise ValueError(
                f"{path} has {size} bytes, which are no whole rows of {row_bytes} bytes ({item} of shape "
                f"{row_shape}): {size % max(row_bytes, 1)} are over"
            )
        shape = (size // row_bytes, *row_shape)
        self._array: Any = np.memmap(path, item, "r", shape=shape) if size else np.empty(shape, item)
        self._is(path.stem, item, shape)

    def read(self, start: int, stop: int) -> Array:
        return np.array(self._array[start:stop])

    def close(self) -> None:
        del self._array


class Hdf5Source(_OfOneFile):
    """A dataset of an HDF5 file."""

    def __init__(self, path: Path, inner: str) -> None:
        super().__init__(path, inner)
        self._file = need("h5py").File(path, "r")
        try:
            self._array = self._file[inner]
            if self._array.shape is None:
                raise ValueError(f"{self.name} is empty: it has no shape")
            self._is(inner.strip("/"), self._array.dtype, self._array.shape, dict(self._array.attrs))
            self.chunk_rows = self._array.chunks[0] if self._array.chunks else 1
        except BaseException:
            self._file.close()
            raise

    def read(self, start: int, stop: int) -> Array:
        out = np.empty((stop - start, *self._array.shape[1:]), self._array.dtype)
        self._array.read_direct(out, np.s_[start:stop])
        return out

    def close(self) -> None:
        self._file.close()


def hdf5_names(path: Path) -> list[str]:
    """Every dataset of an HDF5 file."""
    h5py = need("h5py")
    found: list[str] = []
    with h5py.File(path, "r") as file:
        file.visititems(lambda name, it: found.append(name) if isinstance(it, h5py.Dataset) else None)
    return found


def hdf5_attrs(path: Path) -> dict[str, Any]:
    """Attributes of the file."""
    with need("h5py").File(path, "r") as file:
        return plain_attrs(dict(file.attrs))


class Blosc2Source(_OfOneFile):
    """A .b2nd file."""

    def __init__(self, path: Path, inner: str = "") -> None:
        super().__init__(path)
        self._array = need("blosc2").open(str(path), mode="r")
        if not hasattr(self._array, "dtype"):
            raise TypeError(f"{path} is a frame of bytes, not an array of blosc2")
        attrs = {str(key): self._array.vlmeta[key] for key in self._array.vlmeta}
        self._is(path.stem, self._array.dtype, self._array.shape, attrs)
        self.chunk_rows = self._array.chunks[0]

    def read(self, start: int, stop: int) -> Array:
        return np.asarray(self._array[start:stop])

    def close(self) -> None:
        del self._array


class StoreSource(_OfOneFile):
    """A store of ours: to be written anew with other options, or as a column of a dataset."""

    def __init__(self, path: Path, inner: str = "") -> None:
        super().__init__(path)
        self._reader = Reader(path, check="full")
        shape = self._reader.shape
        self._is(path.stem, self._reader.dtype, shape, self._reader.attrs)

    def read(self, start: int, stop: int) -> Array:
        rows: Array = self._reader.read(start, stop)
        return rows

    def close(self) -> None:
        self._reader.close()


class NpzSource(_OfOneFile):
    """A member of a .npz file. One in C order is read as a stream; of one in Fortran order each row is spread
    over all of it, so it is unpacked into a temporary file first."""

    def __init__(self, path: Path, inner: str) -> None:
        super().__init__(path, inner)
        with ExitStack() as opened:
            self._zip = opened.enter_context(zipfile.ZipFile(path))
            self._stream = opened.enter_context(self._zip.open(inner + ".npy"))  # holds the file open, too
            shape, self._fortran, self._item = _npy_header(self._stream, self.name)
            self._is(inner, self._item, shape)
            opened.pop_all()
        self._shape = shape
        self._begin = self._stream.tell()
        self._unpacked: Any = None

    def read(self, start: int, stop: int) -> Array:
        if self._fortran and len(self._shape) > 1:
            return np.array(self._whole()[start:stop], order="C")
        row_bytes = self.row_bytes
        self._stream.seek(self._begin + start * row_bytes)
        out = np.empty((stop - start, *self._shape[1:]), self._item)
        view = out.reshape(-1).view(np.uint8)
        filled = 0
        while filled < len(view):
            block = self._stream.read(min(len(view) - filled, 1 << 20))
            if not block:
                raise ValueError(f"{self.name} ends after {start + filled // row_bytes} of {self.rows} rows")
            view[filled : filled + len(block)] = np.frombuffer(block, np.uint8)
            filled += len(block)
        return out

    def _whole(self) -> Any:
        if self._unpacked is None:
            self._spool = tempfile.TemporaryFile()  # noqa: SIM115 close() closes it
            self._stream.seek(self._begin)
            while block := self._stream.read(1 << 20):
                self._spool.write(block)
            self._spool.flush()
            self._unpacked = np.memmap(self._spool, self._item, "r", shape=self._shape, order="F")
        return self._unpacked

    def close(self) -> None:
        self._stream.close()
        self._zip.close()
        if self._unpacked is not None:
            del self._unpacked
            self._spool.close()


def _npy_header(stream: Any, name: str) -> tuple[tuple[int, ...], bool, DType]:
    form = np.lib.format
    version = form.read_magic(stream)
    read = form.read_array_header_1_0 if version == (1, 0) else form.read_array_header_2_0
    shape, fortran, dtype = read(stream, max_header_size=_MOST_HEADER)
    if dtype.hasobject:
        raise TypeError(f"{name} holds objects, which NumPy pickles: they are not opened")
    return shape, fortran, dtype


def npz_names(path: Path) -> list[str]:
    """The members of a .npz file."""
    with zipfile.ZipFile(path) as file:
        return [name.removesuffix(".npy") for name in file.namelist() if name.endswith(".npy")]


class ObjectSource(ArraySource):
    """An array that the caller has open: whatever has shape, dtype and slices of rows."""

    def __init__(self, array: Any) -> None:
        if not (hasattr(array, "shape") and hasattr(array, "dtype") and hasattr(array, "__getitem__")):
            raise TypeError(f"a source is a path or an array, not {type(array).__name__}")
        self._array = array
        self.name = type(array).__name__
        self.columns = {"array": column_kind(self.name, np.dtype(array.dtype), array.shape, {})}
        self.rows = int(array.shape[0])
        chunks = getattr(array, "chunks", None)
        if isinstance(chunks, tuple) and chunks and isinstance(chunks[0], int):
            self.chunk_rows = chunks[0]

    def fingerprint(self) -> str:
        """Of its first, middle and last row: all of them would be read once more."""
        kind = self.columns["array"]
        some = sorted({0, self.rows // 2, self.rows - 1}) if self.rows else []
        rows = [np.ascontiguousarray(self.read(row, row + 1)).tobytes() for row in some]
        return digest([self.rows, str(kind.dtype), kind.row_shape, rows])

    def read(self, start: int, stop: int) -> Array:
        return np.asarray(self._array[start:stop])
