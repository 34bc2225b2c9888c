"""Layers of tiles encoded by an NVIDIA GPU: CuPy transposes them, nvCOMP compresses them (cdd[gpu]).

    w = cdd.tiles.open("run.zarr", "w", ..., codec="zstd", tile_shape=(32, 256, 256))
    with cdd.tiles.gpu.LayerEncoder(w) as gpu:
        gpu.append(frames)                  # NumPy or CuPy arrays of whole frames

The writer is the same: shards, journal, going on after a crash. Only codec="zstd" is made here, whose frames
say their size. What follows is arithmetic on the array library that is given, so that it runs on NumPy, too,
and is tested there; it has not run on a GPU. CuPy and nvidia-nvcomp-cu12 are imported when they are used.
"""

import math
from collections.abc import Callable, Sequence
from types import TracebackType
from typing import Any, Self

from cdd.tiles.writer import TileWriter

Encode = Callable[[Any], Sequence[Any]]  # tiles, one a row of bytes, to what each becomes


def lift(frames: Any, tile: Sequence[int], fill: Any, arrays: Any) -> Any:
    """A layer's frames as its tiles, (tiles, *tile): the transpose that the CPU does run by run.

    `frames` has at most tile[0] frames; what is missing of a tile at an edge, or of the layer, is `fill`.
    `arrays` is the module of the arrays: numpy or cupy.
    """
    counts = [1, *(-(-size // side) for size, side in zip(frames.shape[1:], tile[1:], strict=True))]
    padded = [count * side for count, side in zip(counts, tile, strict=True)]
    if list(frames.shape) != padded:
        whole = arrays.full(padded, fill, frames.dtype)
        whole[tuple(slice(size) for size in frames.shape)] = frames
        frames = whole
    pairs = [one for count, side in zip(counts, tile, strict=True) for one in (count, side)]
    rank = len(tile)
    order = [*range(0, 2 * rank, 2), *range(1, 2 * rank, 2)]
    return frames.reshape(pairs).transpose(order).reshape((math.prod(counts), *tile))


def nvcomp_zstd() -> tuple[Any, Encode]:
    """CuPy, and an encoder of batches by nvCOMP. ImportError or RuntimeError say what is missing."""
    try:
        import cupy  # type: ignore[import-not-found, unused-ignore]
        from nvidia import nvcomp  # type: ignore[import-not-found, unused-ignore]
    except ImportError as error:
        raise ImportError(f'tiles on a GPU need CuPy and nvCOMP: pip install "cdd[gpu]" ({error})') from None
    try:
        if cupy.cuda.runtime.getDeviceCount() == 0:
            raise RuntimeError("there is no CUDA device")
        codec = nvcomp.Codec(algorithm="Zstd", bitstream_kind=nvcomp.BitstreamKind.RAW)
    except RuntimeError as error:  # CuPy's own errors are of this type
        raise RuntimeError(f"tiles on a GPU need a CUDA device and its driver: {error}") from None

    def encode(tiles: Any) -> Sequence[Any]:
        encoded = codec.encode(nvcomp.as_arrays(list(tiles)))
        return [bytes(one.cpu()) for one in encoded]

    return cupy, encode


class LayerEncoder:
    """Collects frames on the device and gives the writer whole layers that are encoded there.

    Closing it stores what is left as a last layer, after which the writer takes no more frames; the writer is
    its caller's to close.
    """

    def __init__(self, writer: TileWriter, backend: tuple[Any, Encode] | None = None) -> None:
        if writer.codec != "zstd":
            raise ValueError(f'a GPU encodes codec="zstd", the writer has {writer.codec}')
        if len(writer) % writer.tile_shape[0]:
            raise ValueError(
                f"the writer has {len(writer)} frames, which are no whole layers: go on by append()"
            )
        self._arrays, self._encode = backend or nvcomp_zstd()
        self._writer = writer
        self._waiting: list[Any] = []
        self._frames = 0

    def append(self, frames: Any) -> None:
        """Frames, (n, *frame_shape), on the host or the device."""
        batch = self._arrays.asarray(frames)
        if batch.dtype != self._writer.dtype:
            raise TypeError(f"frames have dtype {batch.dtype}, the array {self._writer.dtype}")
        if batch.shape[1:] != self._writer.frame_shape:
            wanted = ", ".join(map(str, ("n", *self._writer.frame_shape)))
            raise ValueError(f"frames have shape {batch.shape}, ({wanted}) is wanted")
        layer = self._writer.tile_shape[0]
        while len(batch):
            piece = batch[: layer - self._frames]
            self._waiting.append(piece.copy())
            self._frames += len(piece)
            batch = batch[len(piece) :]
            if self._frames == layer:
                self._store()

    def _store(self) -> None:
        arrays = self._arrays
        frames = self._waiting[0] if len(self._waiting) == 1 else arrays.concatenate(self._waiting)
        count, self._frames, self._waiting = self._frames, 0, []
        tiles = lift(frames, self._writer.tile_shape, arrays.asarray(self._writer.fill_item), arrays)
        rows = arrays.ascontiguousarray(tiles).reshape(len(tiles), -1).view(arrays.uint8)
        self._writer.put_layer(self._encode(rows), count)

    def close(self) -> None:
        if self._frames:
            self._store()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is None:
            self.close()
