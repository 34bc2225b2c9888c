"""The reader of one array of tiles, with NumPy's keys."""

import errno
import json
import math
import operator
import os
from pathlib import Path
from types import TracebackType
from typing import Any, NamedTuple, Self

import numpy as np

from cdd import _cdd
from cdd.compared import ComparedByRows
from cdd.dtypes import Array, DType, buffer_dtype, dtype_of
from cdd.indexing import Numbers, Selection, select
from cdd.out import out_items
from cdd.tiles.awaited import AwaitedTileReader
from cdd.tiles.metadata import Metadata
from cdd.tiles.pyramid import read_group


class Stored(NamedTuple):
    bytes: int  # of all tiles, without indexes and gaps
    tiles: int
    absent_tiles: int  # not stored, since they are fill values


def _opened(path: str) -> _cdd.TileReader:
    try:
        return _cdd.TileReader(path)
    except FileNotFoundError:
        folder = Path(path)
        if folder.is_file():
            raise _cdd.FormatError(
                f"{path} is a file: an array of tiles is a folder with zarr.json"
            ) from None
        if (folder / ".zarray").exists() or (folder / ".zgroup").exists():
            raise _cdd.UnsupportedError(f"{path} is zarr v2: cdd.migrate reads it") from None
        if folder.is_dir():
            told = "the folder is no array of tiles: it has no zarr.json"
            raise FileNotFoundError(errno.ENOENT, told, path) from None
        raise


class TileReader(AwaitedTileReader, ComparedByRows):
    """Made by cdd.tiles.open(path). Any number of threads may read; it sees more only by refresh()."""

    def __init__(self, path: str | os.PathLike[str], *, scale: int = 0) -> None:
        self._path = os.fspath(path)
        group = read_group(self._path)
        self._scales = 1 if group is None else len(group.scales)
        if not 0 <= operator.index(scale) < self._scales:
            raise IndexError(f"scale {scale} is not one of {self._scales}")
        self._group_attrs = {} if group is None else group.attrs
        of_scale = self._path if group is None else f"{self._path}/{group.scales[scale]}"
        self._core: _cdd.TileReader | None = _opened(of_scale)
        self._look()

    def _look(self) -> None:
        core = self._open()
        self._metadata = Metadata(json.loads(core.metadata))
        self._dtype: DType = dtype_of(core.dtype)

    def _open(self) -> _cdd.TileReader:
        if self._core is None:
            raise ValueError("the reader is closed")
        return self._core

    path = property(lambda self: self._path)

    @property
    def shape(self) -> tuple[int, ...]:
        return self._metadata.shape

    @property
    def dtype(self) -> DType:
        return self._dtype

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def nbytes(self) -> int:
        return math.prod(self.shape) * self._dtype.itemsize

    @property
    def tile_shape(self) -> tuple[int, ...]:
        return self._metadata.tile

    @property
    def shard_shape(self) -> tuple[int, ...]:
        return self._metadata.shard

    @property
    def chunks(self) -> tuple[int, ...]:
        """Sizes of a tile, as h5py has them: what dask and xarray read at once."""
        return self._metadata.tile

    @property
    def attrs(self) -> dict[str, Any]:
        """Of the array; of the group, its multiscales included, where it is a pyramid's."""
        return self._group_attrs or self._metadata.attributes

    @property
    def scales(self) -> int:
        """How many scales there are to open."""
        return self._scales

    @property
    def dimension_names(self) -> list[str | None] | None:
        return self._metadata.dimension_names

    @property
    def fill_value(self) -> Any:
        """As zarr.json has it."""
        return self._metadata.fill_value

    @property
    def codec(self) -> str:
        """The chain of codecs of a tile, as one line."""
        return self._metadata.codec_text

    def __len__(self) -> int:
        return self.shape[0]

    def read(self, a: int, b: int, out: Any = None) -> Array:
        """Frames a to b (b not included), into `out` where that is given: of this shape and dtype, or raw
        bytes. IndexError where they are not 0 <= a <= b <= len(r)."""
        if not 0 <= a <= b <= len(self):
            raise IndexError(f"frames {a} to {b} are not within the array's {len(self)}")
        return self._box((a, *(0 for _ in self.shape[1:])), (b - a, *self.shape[1:]), out)

    def _box(self, start: tuple[int, ...], count: tuple[int, ...], out: Any = None) -> Array:
        core = self._open()
        if out is None:
            array = np.empty(count, self._dtype)
            core.read(start, count, array.view(buffer_dtype(self._dtype)))
            return array
        core.read(start, count, out_items(out, self._dtype, count))
        return out  # type: ignore[no-any-return]

    def __getitem__(self, key: Any) -> Any:
        """As of a NumPy array. Only tiles that are touched are read, and those between two of them along
        other dimensions than the first."""
        picks, rest = select(key, self.shape)
        if any(len(numbers) == 0 for numbers in picks):
            return np.empty([len(numbers) for numbers in picks], self._dtype)[rest]
        begins = [int(numbers[0]) for numbers in picks]
        counts = [int(numbers[-1]) + 1 - begin for numbers, begin in zip(picks, begins, strict=True)]
        box = self._frames(picks[0], begins[1:], counts[1:])
        inside = Selection((range(len(picks[0])), *picks[1:]), rest)
        return box[inside.within((0, *begins[1:]), box.shape)]

    def _frames(self, numbers: Numbers, begins: list[int], counts: list[int]) -> Array:
        """A box of these frames alone: runs of them that share tiles are read at once."""
        first, last = int(numbers[0]), int(numbers[-1]) + 1
        if last - first == len(numbers):
            return self._box((first, *begins), (last - first, *counts))
        found = np.asarray(numbers)
        tiles = found // self.tile_shape[0]
        cuts = np.flatnonzero(np.diff(tiles) > 1) + 1
        box = np.empty((len(found), *counts), self._dtype)
        done = 0
        for run in np.split(found, cuts):
            begin, end = int(run[0]), int(run[-1]) + 1
            read = self._box((begin, *begins), (end - begin, *counts))
            box[done : done + len(run)] = read[run - begin]
            done += len(run)
        return box

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Array:
        if copy is False:
            raise ValueError("the tiles have to be decoded: an array of them is always a copy")
        whole = self.read(0, len(self))
        return whole if dtype is None else whole.astype(dtype, copy=False)

    def refresh(self) -> bool:
        """Looks for what was written meanwhile. True where the shape has changed."""
        changed = self._open().refresh()
        self._look()
        return changed

    def stored(self) -> Stored:
        """Bytes and tiles that the indexes name; reads each of them."""
        return Stored(*self._open().stored())

    def close(self) -> None:
        self._core = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<cdd.tiles.TileReader {self._path!r}, {self.shape} {self._dtype}, tiles {self.tile_shape}>"
