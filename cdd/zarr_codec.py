"""A codec of zarr v3 whose chunks are cdd stores: arrays of books that zarr-python writes and reads.

    array = zarr.create_array("books.zarr", shape=books.shape, chunks=(4096, 50, 3), dtype="f4",
                              serializer=cdd.zarr_codec.CddCodec(), compressors=None)
    array[:] = books
    zarr.open_array("books.zarr")[1000:1064]            # wherever cdd is installed: zarr finds the codec

It makes chunks smaller than zstd does, and checks them when they are read. It makes zarr no faster: finding a
chunk takes zarr-python longer than decoding it takes cdd. What is fast is one store of all rows: cdd.open().
Other programs that read zarr do not know the codec; each chunk's file is a store, which cdd.open() reads.

A window within a chunk decodes that part of it alone, though zarr fetches the whole chunk. Books should be
chunked along rows only. It needs zarr: pip install "cdd[zarr]".
"""

import asyncio
from dataclasses import dataclass, fields
from typing import Any, ClassVar, Self

import numpy as np

from cdd import _cdd
from cdd.dtypes import Array, code_of
from cdd.store.opening import CODECS, save
from cdd.store.reader import Reader

try:
    from zarr.abc.codec import ArrayBytesCodec, ArrayBytesCodecPartialDecodeMixin
except ModuleNotFoundError as error:
    if (error.name or "").partition(".")[0] != "zarr":
        raise
    raise ImportError('cdd.zarr_codec needs zarr: pip install "cdd[zarr]"', name="zarr") from None

__all__ = ["CddCodec"]

_NAME = "cdd.store"
_MOST_DIMS = 8


@dataclass(frozen=True)
class CddCodec(ArrayBytesCodec, ArrayBytesCodecPartialDecodeMixin):
    """The serializer of a zarr array: each chunk a cdd store of its own, some 260 bytes more than its rows.

    profile, codec, zstd_level, chunk_bytes  as cdd.open(path, "w") has them. "auto" tries several codecs for
    each chunk: naming one, as "levels", halves the time that encoding takes.
    """

    is_fixed_size: ClassVar[bool] = False

    profile: str = "fast"
    codec: str = "auto"
    zstd_level: int = 3
    chunk_bytes: int = 4096

    def __post_init__(self) -> None:
        if self.profile not in ("fast", "dense"):
            raise ValueError(f'profile is "fast" or "dense", not {self.profile!r}')
        if self.codec not in CODECS:
            raise ValueError(f"codec is one of {', '.join(CODECS)}, not {self.codec!r}")

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> Self:
        """The codec of what an array's zarr.json says. ValueError for options that are not known."""
        given = data.get("configuration") or {}
        if unknown := given.keys() - {field.name for field in fields(cls)}:
            raise ValueError(f"the codec {_NAME} of this version knows no {unknown.pop()!r}")
        return cls(**given)

    def to_dict(self) -> dict[str, Any]:
        """What zarr.json says of it."""
        options = {field.name: getattr(self, field.name) for field in fields(self)}
        return {"name": _NAME, "configuration": options}

    def evolve_from_array_spec(self, array_spec: Any) -> Self:
        """Itself. TypeError for a dtype that a store does not hold."""
        code_of(array_spec.dtype.to_native_dtype())
        return self

    def compute_encoded_size(self, input_byte_length: int, chunk_spec: Any) -> int:
        raise NotImplementedError("how large a chunk becomes is known when it was encoded")

    # ------------------------------------------------------------ chunks

    def _encode_sync(self, chunk_array: Any, chunk_spec: Any) -> Any:
        array = chunk_array.as_numpy_array()
        memory = _cdd.Memory()
        save(
            memory, array.reshape(_stored_shape(array.shape)), index_chunks=1, profile=self.profile,
            codec=self.codec, zstd_level=self.zstd_level, chunk_bytes=self.chunk_bytes,
        )  # fmt: skip
        return chunk_spec.prototype.buffer.from_bytes(bytes(memory))

    def _decode_sync(self, chunk_bytes: Any, chunk_spec: Any) -> Any:
        with _opened(chunk_bytes, chunk_spec) as reader:
            return _given(reader[:].reshape(chunk_spec.shape), chunk_spec)

    async def _encode_single(self, chunk_array: Any, chunk_spec: Any) -> Any:
        return await asyncio.to_thread(self._encode_sync, chunk_array, chunk_spec)

    async def _decode_single(self, chunk_bytes: Any, chunk_spec: Any) -> Any:
        return await asyncio.to_thread(self._decode_sync, chunk_bytes, chunk_spec)

    async def _decode_partial_single(self, byte_getter: Any, selection: Any, chunk_spec: Any) -> Any:
        chunk_bytes = await byte_getter.get(prototype=chunk_spec.prototype)
        if chunk_bytes is None:
            return None
        return await asyncio.to_thread(_part, chunk_bytes, selection, chunk_spec)


def _part(chunk_bytes: Any, selection: Any, chunk_spec: Any) -> Any:
    with _opened(chunk_bytes, chunk_spec) as reader:
        if reader.shape == chunk_spec.shape:
            return _given(np.asarray(reader[selection]), chunk_spec)
        return _given(np.asarray(reader[:].reshape(chunk_spec.shape)[selection]), chunk_spec)


def _stored_shape(shape: tuple[int, ...]) -> tuple[int, ...]:
    """A store has rows, and few dimensions."""
    if not shape:
        return (1,)
    return shape if len(shape) <= _MOST_DIMS else (shape[0], int(np.prod(shape[1:])))


def _opened(chunk_bytes: Any, chunk_spec: Any) -> Reader:
    """The store that a chunk is. FormatError where it is of another array."""
    reader = Reader(chunk_bytes.as_numpy_array())
    dtype = chunk_spec.dtype.to_native_dtype()
    if reader.shape != _stored_shape(chunk_spec.shape) or reader.dtype != dtype.newbyteorder("="):
        raise _cdd.FormatError(
            f"the chunk is a store of {reader.dtype} {reader.shape}, the array's chunks are {dtype} "
            f"{chunk_spec.shape}"
        )
    return reader


def _given(array: Array, chunk_spec: Any) -> Any:
    dtype = chunk_spec.dtype.to_native_dtype()
    if array.dtype != dtype:  # the other byte order
        array = array.astype(dtype)
    return chunk_spec.prototype.nd_buffer.from_numpy_array(array)
