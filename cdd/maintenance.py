"""Looking after files: what is wrong with one, and new files made of another's rows.

A new file gets its name when it is complete and durable; a file that is replaced stays whole until then, and
readers keep the one they have open. (Windows replaces no file that is open: PermissionError.)
"""

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from cdd import _cdd, arguments
from cdd.reader import Reader

Name = str | os.PathLike[str]
Progress = Callable[[int, int], object]

_VERIFY_CHUNKS = 1024  # of one call: between two the caller is told how far it is


class BadChunk(NamedTuple):
    """A chunk that cannot be read. Its rows [start, stop) are None where the index does not tell them."""

    chunk: int
    start: int | None
    stop: int | None
    error: str

    def __str__(self) -> str:
        what = self.error.removeprefix(f"chunk {self.chunk} ").removeprefix("cannot be found: ")
        return f"chunk {self.chunk}, {_rows_text(self.start, self.stop)}: {what}"


class LostChunks(NamedTuple):
    """Chunks of which no whole record was found, `chunks` of them from number `first` on.

    `chunks` is None behind the last record, where something is but nothing tells how much. `start` and `stop`
    are their rows in the damaged file, None where nothing tells them.
    """

    first: int
    chunks: int | None
    start: int | None
    stop: int | None

    def __str__(self) -> str:
        if self.chunks is None:
            since = "" if self.start is None else f", rows from {self.start} on"
            place = f"what was behind chunk {self.first - 1}" if self.first else "what was there"
            return f"{place}{since}: how much is not known"
        last = self.first + self.chunks - 1
        name = f"chunk {self.first}" if last == self.first else f"chunks {self.first} to {last}"
        return f"{name}, {_rows_text(self.start, self.stop)}"


@dataclass(frozen=True)
class RepairReport:
    """What repair() found: as a str, a text for people."""

    path: str
    output: str
    rows: int  # kept
    chunks: int  # kept
    lost: tuple[LostChunks, ...]
    complete: bool  # False: the search was given up, there may be more

    def __str__(self) -> str:
        lines = [f"{self.path}: {_count(self.rows, 'row')} in {_count(self.chunks, 'chunk')} kept"]
        lines += [f"lost: {gap}" for gap in self.lost] or ["nothing lost"]
        if not self.complete:
            lines.append("the search was given up: the file holds too much that looks like chunks and is not")
        return "\n".join([*lines, f"written to {self.output}"])


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def _rows_text(start: int | None, stop: int | None) -> str:
    if start is not None and stop is not None:
        return f"row {start}" if stop == start + 1 else f"rows {start} to {stop - 1}"
    if start is not None:
        return f"rows from {start} on, how many is not known"
    return "which rows is not known" if stop is None else f"rows up to {stop - 1}"


def find_bad_chunks(reader: Reader, progress: Progress | None = None) -> Iterator[BadChunk]:
    """Reads all chunks with every check there is, on cdd.threads() cores; yields those that are damaged.

    `progress(done, chunks)` is called now and then.
    """
    core = reader._core
    chunks = core.chunks
    for first in range(0, chunks, _VERIFY_CHUNKS):
        count = min(_VERIFY_CHUNKS, chunks - first)
        for chunk, error in core.verify_chunks(first, count):
            yield BadChunk(chunk, *_rows_of(core, chunk), error)
        if progress is not None:
            progress(first + count, chunks)


def count_hidden_chunks(reader: Reader, max_chunk_bytes: int = 1 << 31) -> int:
    """How many chunks, in whole appends, the file has behind those that its index shows.

    None as long as all is well, whether or not a writer is at work. A crash of the system may leave some, and
    so does damage to the end of the index that looks like such a crash; the next writer would cut them off.
    """
    if reader.path is None:
        return 0
    if reader.nchunks:
        with suppress(_cdd.CddError):  # of a damaged last chunk
            last = reader.chunks[-1]
            if last.offset + last.stored_bytes == reader.stored_bytes:
                return 0
    found = _cdd.whole_end(reader.path, max_chunk_bytes)
    reader.refresh()  # a writer may be at work
    return max(0, found - reader.nchunks)


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


def repair(
    path: Name, output: Name | None = None, *, overwrite: bool = False, max_chunk_bytes: int = 1 << 31
) -> RepairReport:
    """Writes every whole chunk of a damaged file to a new one, and says what is lost.

    It does not trust the index: chunks are found by what they are. They keep their order, codecs and checks;
    rows behind lost ones move up. The damaged file is not touched. `output` is by default NAME.repaired.cdd
    beside it. Chunks of more than `max_chunk_bytes` in memory are not decoded and count as lost.

    Raises BlockingIOError while a writer has the file open, FileExistsError when `output` is there and not to
    be overwritten, ValueError when it is the damaged file itself, and FormatError or UnsupportedError when
    the header is damaged: without it nothing can be read.
    """
    source = os.fspath(path)
    if output is None:
        output = str(Path(source).with_suffix("")) + ".repaired.cdd"
    target = os.fspath(output)
    if _is_same_file(source, target):
        raise ValueError(f"repair() writes a new file: {target!r} is the damaged one")
    rows, chunks, complete, lost = _cdd.repair(source, target, overwrite, max_chunk_bytes)
    gaps = tuple(LostChunks(first, count or None, start, stop) for first, count, start, stop in lost)
    return RepairReport(source, target, rows, chunks, gaps, complete)


def truncate(
    path: Name,
    output: Name | None = None,
    *,
    rows: int | None = None,
    chunks: int | None = None,
    overwrite: bool = False,
) -> int:
    """Keeps the first `rows` rows or `chunks` chunks; returns how many rows those are.

    They go to `output`, else to a file that replaces this one. Chunks that are kept are verified first: one
    that is damaged raises, and nothing changes. Raises IndexError when there are not so many, and
    BlockingIOError when a writer has the file open.
    """
    if (rows is None) == (chunks is None):
        raise ValueError("either rows or chunks says how much to keep")
    if rows is None:
        chunks = chunks or 0
        with Reader(path, mmap=False) as reader:
            if not 0 <= chunks <= reader.nchunks:
                raise IndexError(f"{os.fspath(path)} has {reader.nchunks} chunks, not {chunks}")
            rows = reader.chunks[chunks - 1].stop if chunks else 0
    if rows < 0:
        raise IndexError(f"{rows} rows cannot be kept")
    source, target, replace = _target(path, output, overwrite)
    with _same_mode(source, target):
        _cdd.truncate(source, target, replace, rows)
    return rows


def compact(
    path: Name,
    output: Name | None = None,
    *,
    codec: str = "auto",
    profile: str = "dense",
    level: int = 3,
    chunk_bytes: int | None = None,
    chunk_rows: int | None = None,
    overwrite: bool = False,
) -> tuple[int, int]:
    """Writes the rows anew in full chunks with the codecs that suit them now; returns bytes before and after.

    They go to `output`, else to a file that replaces this one, unless it would not be smaller: then this one
    stays. Rows do not change; float16 storage is not made again, so files that have it may grow. The options
    are those of cdd.open(path, "w"); chunk_rows is by default what the file was created with.

    Raises ValueError for a codec that would round rows (okx_ob_f16), what reading raises for a damaged file,
    which then stays as it is, and BlockingIOError when a writer has the file open.
    """
    source, target, replace = _target(path, output, overwrite)
    in_place = output is None
    level = arguments.size("level", level, 1, 22)
    size = arguments.chunk_size(chunk_bytes, chunk_rows)
    options = arguments.text("codec", codec), arguments.text("profile", profile), level, *size
    with _same_mode(source, target):
        return _cdd.compact(source, target, replace, in_place, *options)


def _is_same_file(a: str, b: str) -> bool:
    try:
        return Path(a).samefile(b)
    except FileNotFoundError:
        return False


def _target(path: Name, output: Name | None, overwrite: bool) -> tuple[str, str, bool]:
    """(source, target, whether the target may be there); through links, which are not to be replaced."""
    source = os.path.realpath(path)
    return (source, source, True) if output is None else (source, os.fspath(output), overwrite)


@contextmanager
def _same_mode(source: str, target: str) -> Iterator[None]:
    """Gives a file that replaces another the permissions of that one."""
    mode = Path(source).stat().st_mode & 0o7777
    yield
    if source == target:
        Path(target).chmod(mode)
