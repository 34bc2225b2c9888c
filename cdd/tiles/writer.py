"""The writer of one array of tiles: frames and bytes in, and what became of them."""

import atexit
import json
import os
import traceback
import warnings
import weakref
from types import TracebackType
from typing import Any, NamedTuple, Self

import numpy as np
import numpy.typing as npt

from cdd import _cdd
from cdd.arguments import shown
from cdd.dtypes import Array, DType, array_of, buffer_dtype, dtype_of
from cdd.tiles.awaited import AwaitedTileWriter
from cdd.tiles.metadata import Metadata
from cdd.tiles.replacing import remove_unfinished


class Progress(NamedTuple):
    """How far a writer is. Frames count along dimension 0; seconds are those of a stage, all threads."""

    received: int  # whole frames that write() and append() took
    encoded: int  # frames whose tiles are stored
    readable: int  # frames that a reader sees
    durable: int  # frames that survive a power cut
    received_bytes: int
    stored_bytes: int
    wasted_bytes: int  # of tiles that were stored again, since a flush had stored them half full
    planes: int  # pieces of memory for pixels
    planes_in_use: int
    planes_most_in_use: int
    stalls: int  # times that no plane was free
    scatter_seconds: float
    encode_seconds: float
    commit_seconds: float

    @property
    def scatter_rate(self) -> float:
        """Bytes a second of copying pixels to their tiles, while that is done; 0 before the first."""
        return self.received_bytes / self.scatter_seconds if self.scatter_seconds else 0.0

    @property
    def encode_rate(self) -> float:
        """Bytes a second of encoding and storing tiles, while that is done; 0 before the first."""
        return self.received_bytes / self.encode_seconds if self.encode_seconds else 0.0


class TileWriter(AwaitedTileWriter):
    """Made by cdd.tiles.open(path, "w", "x" or "a", ...). One thread at a time gets in, any may call."""

    def __init__(self, path: str | os.PathLike[str], mode: str, options: dict[str, Any]) -> None:
        self._path = os.fspath(path)
        self._core = _cdd.TileWriter(self._path, mode, options)
        scales = [Metadata(json.loads(self._core.metadata(k))) for k in range(self._core.scales)]
        if mode == "a":
            remove_unfinished(self._path, scales)
        metadata = scales[0]
        self._metadata = metadata
        self._dtype: DType = dtype_of(metadata.dtype_code)
        _writers.add(self)

    @property
    def path(self) -> str:
        return self._path

    @property
    def dtype(self) -> DType:
        return self._dtype

    @property
    def shape(self) -> tuple[int, ...]:
        """Of what was received: whole frames."""
        return len(self), *self._metadata.shape[1:]

    @property
    def frame_shape(self) -> tuple[int, ...]:
        return self._metadata.shape[1:]

    @property
    def tile_shape(self) -> tuple[int, ...]:
        return self._metadata.tile

    @property
    def shard_shape(self) -> tuple[int, ...]:
        return self._metadata.shard

    @property
    def attrs(self) -> dict[str, Any]:
        return self._metadata.attributes

    @property
    def codec(self) -> str:
        """The chain of codecs of a tile, without the checksum: "zstd", "blosc zstd", "raw", ..."""
        return self._metadata.packing

    @property
    def fill_item(self) -> Any:
        """The fill value as an item of the dtype."""
        return self._metadata.fill_item(self._dtype)

    @property
    def closed(self) -> bool:
        return self._core.closed

    def __len__(self) -> int:
        """Whole frames received, those of an array that was gone on with included."""
        return self.progress().received

    def write(self, data: Any) -> memoryview:
        """Takes what fits now of any bytes, half an item too, and returns a view of what did not fit.

        It never waits for the disk or the codec. An empty view: all was taken. Nothing is taken while another
        thread is in the writer. Bytes beyond a bounded shape are never taken, and given once more they are a
        ValueError. What failed in the background is raised by the next call of any method: OSError where the
        disk failed, which later calls try again. Items are little-endian, in row-major order.
        """
        try:
            view = memoryview(data)
        except TypeError:
            raise TypeError(f"write() takes bytes or what has a buffer, not {shown(data)}") from None
        if not view.c_contiguous:
            raise ValueError(
                f"write() takes items in row-major order, not strides {view.strides}: append() does"
            )
        view = view.cast("B")
        return view[self._core.write(view) :]

    def append(self, frames: npt.ArrayLike) -> None:
        """Takes whole frames, (n, *frame_shape) or one of frame_shape, and waits where no memory is free.

        Any strides and byte order; TypeError for another dtype, ValueError for another shape, for frames
        beyond a bounded shape, or while write() has taken part of a frame, before any is taken.
        """
        self._core.append(self._frames(frames).reshape(-1).view(np.uint8))

    def _frames(self, frames: npt.ArrayLike) -> Array:
        array = array_of(frames)
        if array.dtype.newbyteorder("=") != self._dtype:
            raise TypeError(f"frames have dtype {array.dtype}, the array {self._dtype}")
        if array.shape != self.frame_shape and array.shape[1:] != self.frame_shape:
            wanted = ", ".join(map(str, ("n", *self.frame_shape)))
            raise ValueError(f"frames have shape {array.shape}, ({wanted}) is wanted")
        if array.ndim == 0:
            array = array.reshape(1)
        array = np.ascontiguousarray(array, dtype=self._dtype.newbyteorder("<"))
        return array.view(buffer_dtype(self._dtype))

    def put_layer(self, tiles: Any, frames: int) -> None:
        """Stores a layer of tiles that somebody else encoded, for GPUs: see cdd.tiles.gpu.

        `tiles` are buffers as the array's codec makes them, without the checksum, in row-major order of the
        layer's tiles; an empty one stands for fill values. `frames` of the layer count.
        """
        self._core.put_layer(tuple(tiles), frames)

    @property
    def scales(self) -> int:
        """How many arrays are written: 1, or those of a pyramid."""
        return self._core.scales

    def progress(self, scale: int = 0) -> Progress:
        return Progress(*self._core.progress(scale))

    def flush(self) -> None:
        """Returns when all whole frames received are readable and, unless durability is "none", durable."""
        self._core.flush()

    def close(self) -> None:
        """flush(), then lets go of the array. ValueError where bytes of a part of a frame are left over: they
        are dropped, after everything else was done."""
        self._core.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Closes, and keeps what came before an exception, which goes on."""
        try:
            self.close()
        except Exception:
            if error is None:
                raise

    def __del__(self) -> None:
        core = getattr(self, "_core", None)  # __init__ may have failed
        if core is None or core.closed:
            return
        try:
            warnings.warn(
                f"unclosed <cdd.tiles.TileWriter {self._path!r}>", ResourceWarning, stacklevel=2, source=self
            )
        finally:
            core.close()

    def __repr__(self) -> str:
        if self.closed:
            return f"<cdd.tiles.TileWriter {self._path!r}, closed>"
        return f"<cdd.tiles.TileWriter {self._path!r}, {self.shape} {self._dtype}, tiles {self.tile_shape}>"


_writers: weakref.WeakSet[TileWriter] = weakref.WeakSet()


@atexit.register
def _close_all() -> None:
    """Daemon threads end without letting go of what they have, so that their writers are never collected."""
    for _ in range(len(_writers)):
        try:
            _writers.pop().__del__()
        except KeyError:
            return  # was collected meanwhile
        except Exception:
            traceback.print_exc()
