"""What is wrong with a store: chunks that cannot be read, and whole ones that its index does not show.

It only looks. Whoever opened the store says which; what is done about damage is maintenance's.
"""

import shlex
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import NamedTuple

from cdd import _cdd
from cdd.progress import Progress

MAX_CHUNK_BYTES = 1 << 31  # what a chunk may have at most, and so the default of every limit

_VERIFY_CHUNKS = 1024  # of one call: between two the caller is told how far it is


class BadChunk(NamedTuple):
    """A chunk that cannot be read.

    start, stop  its rows are [start, stop); None where the index does not tell
    offset       of its record in the file, None where the index does not tell
    code         "checksum", "corrupt", "truncated", "unsupported", "limit" or "io"
    error        the same for people
    """

    chunk: int
    start: int | None
    stop: int | None
    offset: int | None
    code: str
    error: str

    @property
    def refused(self) -> bool:
        """Whether it was not looked at, since it is larger than the limit that was given."""
        return self.code == "limit"

    def __str__(self) -> str:
        chunk = f"chunk {self.chunk}, {rows_text(self.start, self.stop)}"
        if self.refused:
            return f"{chunk}: refused: over --max-chunk-bytes"
        place = "" if self.offset is None else f", at {self.offset:#x}"
        return f"{chunk}{place}: {self.error}"


@dataclass(frozen=True)
class VerifyReport:
    """What verify() found; as a str, a text for people.

    rows, chunks  what the index shows
    bad           a BadChunk for each of these chunks that cannot be read
    hidden        whole chunks after them that the index does not show
    """

    path: str
    rows: int
    chunks: int
    bad: tuple[BadChunk, ...]
    hidden: int

    @property
    def ok(self) -> bool:
        """Whether no chunk is bad and none hidden."""
        return not self.bad and not self.hidden

    def __str__(self) -> str:
        refused = sum(chunk.refused for chunk in self.bad)
        damaged = len(self.bad) - refused
        lines = [str(chunk) for chunk in self.bad]
        if self.hidden:
            lines.append(f"DAMAGED, {hidden_text(self.chunks, self.hidden)}")
        if damaged:
            lines.append(f"DAMAGED, {damaged:,} of {count(self.chunks, 'chunk')}")
        if refused:
            lines.append(f"not verified, {refused:,} of {count(self.chunks, 'chunk')}")
        if self.ok:
            lines.append(f"ok, {count(self.rows, 'row')} in {count(self.chunks, 'chunk')}")
        lines = [f"{self.path}: {line}" for line in lines]
        if damaged or self.hidden:
            lines.append(repair_hint(self.path))
        return "\n".join(lines)


def repair_hint(path: str) -> str:
    return f"python -m cdd repair {shlex.quote(path)} writes every whole chunk to a new file"


def count(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def rows_text(start: int | None, stop: int | None) -> str:
    if start is not None and stop is not None:
        return f"row {start}" if stop == start + 1 else f"rows {start} to {stop - 1}"
    if start is not None:
        return f"rows from {start} on, how many is not known"
    return "which rows is not known" if stop is None else f"rows up to {stop - 1}"


def hidden_text(shown: int, hidden: int) -> str:
    return f"the index shows {count(shown, 'chunk')}, {hidden:,} more {'is' if hidden == 1 else 'are'} there"


def find_bad_chunks(core: _cdd.Reader, progress: Progress | None = None) -> Iterator[BadChunk]:
    """Reads all chunks with every check there is, on cdd.threads() cores; yields those that cannot be read.

    `progress(done, chunks)` is called now and then.
    """
    chunks = core.chunks
    for first in range(0, chunks, _VERIFY_CHUNKS):
        number = min(_VERIFY_CHUNKS, chunks - first)
        for chunk, code, offset, error in core.verify_chunks(first, number):
            yield BadChunk(chunk, *_rows_of(core, chunk), offset, code, error)
        if progress is not None:
            progress(first + number, chunks)


def _rows_of(core: _cdd.Reader, chunk: int) -> tuple[int | None, int | None]:
    """The rows of a chunk, from its neighbours where its own place in the index is damaged."""
    with suppress(_cdd.CddError):
        return core.chunk_rows(chunk)
    start: int | None = 0 if chunk == 0 else None
    stop: int | None = core.rows if chunk + 1 == core.chunks else None
    if chunk > 0:
        with suppress(_cdd.CddError):
            start = core.chunk_rows(chunk - 1)[1]
    if chunk + 1 < core.chunks:
        with suppress(_cdd.CddError):
            stop = core.chunk_rows(chunk + 1)[0]
    return start, stop


def count_hidden_chunks(path: str, max_chunk_bytes: int = MAX_CHUNK_BYTES) -> tuple[int, int]:
    """(chunks that a file's index shows, those that the file has after them, in whole appends).

    None is hidden as long as all is well, and while a writer has the file: it took up what was there when it
    opened the file, or cut it off. A crash of the system may leave some, and so does damage to the end of the
    index that looks like such a crash. Where the file does not end with the last chunk, the whole file is
    searched, and no writer can open it meanwhile.
    """
    return _cdd.count_chunks(path, max_chunk_bytes)


def refuse_hidden_chunks(path: str, name: str, max_chunk_bytes: int = MAX_CHUNK_BYTES) -> None:
    """ChecksumError where the index of the file at `path`, called `name`, does not show all whole appends."""
    shown, hidden = count_hidden_chunks(path, max_chunk_bytes)
    if hidden:
        keeps = "it" if hidden == 1 else "them"
        raise _cdd.ChecksumError(f"{name}: {hidden_text(shown, hidden)}: python -m cdd repair keeps {keeps}")
