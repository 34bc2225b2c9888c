"""Outlines: what opening a store reads of it, in an object of its own beside it, KEY.idx.

An outline is a store of ours: its attributes say of which object it is, its rows are bytes. They are the
object's own, of header and index, which a reader checks as it checks those of a file. So an outline can be
wrong only by being of another object, and then it is not used.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from cdd import _cdd
from cdd.store.reader import Reader
from cdd.store.writer import Writer

SUFFIX = ".idx"
_SLOT = 32  # bytes of an entry of an index: like bytes of many entries together are smaller
_MOST_BYTES = 1 << 31

Range = tuple[int, Any]  # where it begins in the object, and its bytes


@dataclass(frozen=True)
class Outline:
    """Of one object."""

    size: int
    e_tag: str | None
    ranges: list[Range]


def read_ranges(
    size: int, name: str, read: Callable[[int, int], Any], known: Sequence[Range] = ()
) -> list[Range]:
    """What opening a store reads, by read(offset, count) -> bytes; neighbours are joined. Blocks of the index
    are read whole. `known` ranges are not read again. Raises what opening raises."""
    known = list(known)

    def ask(ranges: list[tuple[int, int]]) -> None:
        for offset, count in ranges:
            if offset < size:
                fetch(offset, min(count, size - offset))

    def fetch(offset: int, count: int) -> bytes:
        for begin, data in known:
            if begin <= offset and offset + count <= begin + len(data):
                return bytes(memoryview(data)[offset - begin : offset - begin + count])
        known.append((offset, bytes(read(offset, count))))
        return bytes(known[-1][1])

    _cdd.Reader(_cdd.Fetched(name, lambda: size, ask, fetch), {"check": "stored"}).close()
    return joined(known)


def joined(parts: Sequence[Range]) -> list[Range]:
    """Ranges in order, none of which touches another."""
    made: list[tuple[int, bytearray]] = []
    for begin, data in sorted(parts, key=lambda part: part[0]):
        if made and begin <= made[-1][0] + len(made[-1][1]):
            over = made[-1][0] + len(made[-1][1]) - begin
            made[-1][1].extend(bytes(data)[over:] if over < len(data) else b"")
        else:
            made.append((begin, bytearray(data)))
    return [(begin, bytes(data)) for begin, data in made]


def encode(outline: Outline) -> bytes:
    """The bytes of KEY.idx."""
    rows = [_turned(data) for _, data in outline.ranges]
    attrs = {
        "outline": 1,
        "size": outline.size,
        "e_tag": outline.e_tag,
        "ranges": [[begin, len(data)] for begin, data in outline.ranges],
    }
    memory = _cdd.Memory()
    with Writer(memory, "w", attrs=attrs, dtype=np.uint8, row_shape=(), codec="zstd", chunk_rows=1 << 24,
                zstd_level=9, index_chunks=1) as writer:  # fmt: skip
        writer.append(np.frombuffer(b"".join(rows), np.uint8))
    return bytes(memory)


def decode(data: Any) -> Outline | None:
    """None for what is no outline, or a damaged one: all that it has is in the object, too."""
    try:
        with Reader(bytes(data), check="full", max_chunk_bytes=_MOST_BYTES) as reader:
            attrs, content = reader.attrs, reader.read().tobytes()
        if attrs.get("outline") != 1:
            return None
        ranges: list[Range] = []
        at = 0
        for begin, count in attrs["ranges"]:
            if not (isinstance(begin, int) and isinstance(count, int) and begin >= 0 and count > 0):
                return None
            part = content[at : at + count]
            if len(part) != count:
                return None
            ranges.append((begin, _turned_back(part)))
            at += count
        return Outline(attrs["size"], attrs["e_tag"], ranges)
    except (_cdd.CddError, ValueError, KeyError, TypeError):
        return None


def _turned(data: Any) -> bytes:
    whole = len(data) // _SLOT * _SLOT
    return np.frombuffer(data, np.uint8, whole).reshape(-1, _SLOT).T.tobytes() + bytes(data[whole:])


def _turned_back(data: bytes) -> bytes:
    whole = len(data) // _SLOT * _SLOT
    return np.frombuffer(data, np.uint8, whole).reshape(_SLOT, -1).T.tobytes() + data[whole:]
