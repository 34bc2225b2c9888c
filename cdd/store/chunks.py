"""The chunks of a store, as they were written."""

from collections.abc import Sequence
from typing import NamedTuple, overload

from cdd import _cdd
from cdd.arguments import shown


class ChunkInfo(NamedTuple):
    """One chunk: rows [start, stop), stored in stored_bytes at offset of the file, raw_bytes as an array."""

    start: int
    stop: int
    codec: str
    raw_bytes: int
    stored_bytes: int
    offset: int


class Chunks(Sequence[ChunkInfo]):
    """The chunks of a reader, each looked up when it is asked for."""

    def __init__(self, core: _cdd.Reader, numbers: range) -> None:
        self._core = core
        self._numbers = numbers

    def __len__(self) -> int:
        return len(self._numbers)

    @overload
    def __getitem__(self, key: int) -> ChunkInfo: ...
    @overload
    def __getitem__(self, key: slice) -> "Chunks": ...
    def __getitem__(self, key: int | slice) -> "ChunkInfo | Chunks":
        if isinstance(key, slice):
            return Chunks(self._core, self._numbers[key])
        try:
            number = self._numbers[key]
        except IndexError:
            raise IndexError(f"chunk {key} is not one of {len(self._numbers)}") from None
        except TypeError:
            raise TypeError(f"chunks are picked by a number or a slice, not {shown(key)}") from None
        return ChunkInfo._make(self._core.chunk_info(number))

    def __repr__(self) -> str:
        return f"<{len(self)} chunks>"
