"""The reader of one array of tiles, with NumPy's keys."""

import json
import math
import operator
import os
from types import TracebackType
from typing import Any, NamedTuple, Self

import numpy as np

from cdd import _cdd
from cdd.dtypes import Array, DType, buffer_dtype, dtype_of
from cdd.indexing import Run, dimensions, normal, run_of
from cdd.out import out_items
from cdd.tiles.metadata import Metadata
from cdd.tiles.pyramid import read_group


class Stored(NamedTuple):
    bytes: int  # of all tiles, without indexes and gaps
    tiles: int
    absent_tiles: int  # not stored, since they are fill values


class TileReader:
    """Made by cdd.tiles.open(path). Any number of threads may read; it sees more only by refresh()."""

    def __init__(self, path: str | os.PathLike[str], *, scale: int = 0) -> None:
        self._path = os.fspath(path)
        group = read_group(self._path)
        self._scales = 1 if group is None else len(group.scales)
        if not 0 <= operator.index(scale) < self._scales:
            raise IndexError(f"scale {scale} is not one of {self._scales}")
        self._group_attrs = {} if group is None else group.attrs
        of_scale = self._path if group is None else os.path.join(self._path, group.scales[scale])
        self._core: _cdd.TileReader | None = _cdd.TileReader(of_scale)
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
        """As of a NumPy array; only the tiles that the key's bounding box touches are read."""
        runs: list[Run] = []
        rest: list[Any] = []
        keys = self._keys(key)
        for k in keys:
            if k is None:
                rest.append(None)
            else:
                run = run_of(k, self.shape[len(runs)], f"in dimension {len(runs)}")
                runs.append(run)
                rest.append(run.key)
        if any(size == 0 for size in self.shape):
            return np.empty(self.shape, self._dtype)[tuple(keys)]
        whole = self._rows(runs, tuple(rest))
        return whole[()] if whole.ndim == 0 else whole

    def _rows(self, runs: list[Run], rest: tuple[Any, ...]) -> Array:
        """The box of the runs and the key within it; frames far apart are read one by one."""
        start = tuple(run.begin for run in runs)
        count = tuple(run.end - run.begin for run in runs)
        first = runs[0].key
        if rest and rest[0] is first and not isinstance(first, int) and count[0] > self.tile_shape[0]:
            frames = np.arange(count[0])[first]
            if frames.ndim == 1 and 2 * len(frames) * self.tile_shape[0] <= count[0]:
                each = [self._box((start[0] + int(f), *start[1:]), (1, *count[1:])) for f in frames]
                box = np.concatenate(each) if each else np.empty((0, *count[1:]), self._dtype)
                key = slice(None) if isinstance(first, slice) else np.arange(len(frames))
                return np.asarray(box[(key, *rest[1:])])
        return np.asarray(self._box(start, count)[rest])

    def _keys(self, key: Any) -> list[Any]:
        """One key a dimension, and None where there is to be a new one."""
        given = [normal(k) for k in (key if isinstance(key, tuple) else (key,))]
        indexed = sum(dimensions(k) for k in given)
        if indexed > self.ndim:
            raise IndexError(
                f"too many indices: the array has {self.ndim} dimensions, {indexed} were indexed"
            )
        if sum(k is Ellipsis for k in given) > 1:
            raise IndexError("an index can have one ellipsis only")
        if not any(k is Ellipsis for k in given):
            given.append(Ellipsis)
        out: list[Any] = []
        for k in given:
            if k is Ellipsis:
                out.extend([slice(None)] * (self.ndim - indexed))
            elif _is_mask(k) and k.ndim > 1:
                at = sum(one is not None for one in out)
                if k.shape != self.shape[at : at + k.ndim]:
                    raise IndexError(
                        f"the mask has shape {k.shape}, the array {self.shape} from dimension {at} on"
                    )
                out.extend(k.nonzero())
            else:
                out.append(k)
        return out

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


def _is_mask(key: Any) -> bool:
    return isinstance(key, np.ndarray) and key.dtype == bool
