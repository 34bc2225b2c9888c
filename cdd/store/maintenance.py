"""Looking after files: what is wrong with one, and new files made of another's rows.

A new file gets its name when it is complete and durable; a file that is replaced stays whole until then, and
readers keep the one they have open. (Windows replaces no file that is open: PermissionError.)
"""

import os
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple, Unpack

from cdd import _cdd, arguments
from cdd.options import ChunkOptions
from cdd.progress import Progress
from cdd.store.damage import (
    MAX_CHUNK_BYTES,
    VerifyReport,
    count,
    refuse_hidden_chunks,
    rows_text,
)
from cdd.store.reader import Reader

Name = str | bytes | os.PathLike[str] | os.PathLike[bytes]


class LostChunks(NamedTuple):
    """Chunks of which no whole record was found, `chunks` of them from number `first` on.

    `chunks` is None at the end, where more is or was and nothing tells how much. `start` and `stop`
    are their rows in the damaged file, None where nothing tells them.
    """

    first: int
    chunks: int | None
    start: int | None
    stop: int | None

    def __str__(self) -> str:
        if self.chunks is None:
            since = "" if self.start is None else f", rows from {self.start} on"
            place = f"what was after chunk {self.first - 1}" if self.first else "what was there"
            return f"{place}{since}: how much is not known"
        last = self.first + self.chunks - 1
        name = f"chunk {self.first}" if last == self.first else f"chunks {self.first} to {last}"
        return f"{name}, {rows_text(self.start, self.stop)}"


@dataclass(frozen=True)
class RepairReport:
    """What repair() found; as a str, a text for people.

    path, output     the damaged file and the new one
    rows, chunks     how many were kept
    lost             what was not, a LostChunks for each gap; empty when nothing is lost
    complete         whether all of the file was searched: False says that the search was given up and there
                     may be more, not that something is lost
    max_chunk_bytes  larger chunks were not looked at and are among the lost
    """

    path: str
    output: str
    rows: int
    chunks: int
    lost: tuple[LostChunks, ...]
    complete: bool
    max_chunk_bytes: int = MAX_CHUNK_BYTES

    def __str__(self) -> str:
        lines = [f"{self.path}: {count(self.rows, 'row')} in {count(self.chunks, 'chunk')} kept"]
        lines += [f"lost: {gap}" for gap in self.lost] or ["nothing lost"]
        if self.max_chunk_bytes < MAX_CHUNK_BYTES:
            lines.append(f"chunks of more than {self.max_chunk_bytes:,} bytes count as lost")
        if not self.complete:
            lines.append("the search was given up: the file holds too much that looks like chunks and is not")
        return "\n".join([*lines, f"written to {self.output}"])


def verify(
    path: Name, *, max_chunk_bytes: int = MAX_CHUNK_BYTES, progress: Progress | None = None
) -> VerifyReport:
    """Reads a file with every check there is, on cdd.threads() cores, and says all that is wrong with it.

    Chunks of more than `max_chunk_bytes` in memory are not decoded and count as bad.
    `progress(done, chunks)` is called now and then.

    Raises what cdd.open(path) raises where the file cannot be opened.
    """
    source = _path(path)
    with Reader(source, mmap=False, max_chunk_bytes=max_chunk_bytes) as reader:
        return reader.verify(progress=progress)


def repair(
    path: Name,
    output: Name | None = None,
    *,
    overwrite: bool = False,
    max_chunk_bytes: int = MAX_CHUNK_BYTES,
    progress: Progress | None = None,
) -> RepairReport:
    """Writes every whole chunk of a damaged file to a new one, and says what is lost.

    It does not need the index: chunks are found by what they are. They keep their order, codecs and checks;
    rows after lost ones move up. The damaged file is not touched. `output` is by default NAME.repaired.cdd
    beside it. Chunks of more than `max_chunk_bytes` in memory are not decoded and count as lost.
    `progress(done, total)` is told bytes of the file. Ctrl-C, and what that raises, end the work and leave
    nothing behind.

    A file that is made to keep the search busy ends it: then `complete` is False, and there may be more.

    Raises BlockingIOError while a writer has the file open, FileExistsError when `output` is there and not to
    be overwritten, ValueError when it is the damaged file itself, or for a superchunk of a dataset without an
    output (cdd.dataset.repair mends those), and FormatError or UnsupportedError when
    the header is damaged: without it nothing can be read.
    """
    max_chunk_bytes = arguments.size("max_chunk_bytes", max_chunk_bytes, 1, (1 << 63) - 1)
    source = _path(path)
    if output is None:
        _refuse_superchunk(os.path.realpath(source))
        output = str(Path(source).with_suffix("")) + ".repaired.cdd"
    target = _path(output)
    if _is_same_file(source, target):
        raise ValueError(f"repair() writes a new file: {target!r} is the damaged one")
    rows, chunks, complete, lost, _ = _cdd.repair(source, target, overwrite, max_chunk_bytes, progress)
    gaps = tuple(LostChunks(first, count or None, start, stop) for first, count, start, stop in lost)
    return RepairReport(source, target, rows, chunks, gaps, complete, max_chunk_bytes)


def truncate(
    path: Name,
    output: Name | None = None,
    *,
    rows: int | None = None,
    chunks: int | None = None,
    overwrite: bool = False,
    progress: Progress | None = None,
) -> int:
    """Keeps the first `rows` rows or `chunks` chunks; returns how many rows those are.

    They go to `output`, else to a file that replaces this one. Chunks that are kept are verified first: one
    that is damaged raises, and nothing changes. Raises IndexError when there are not so many, ChecksumError
    when the file has whole chunks that its index does not show (repair() keeps them), and BlockingIOError
    when a writer has the file open that is to be replaced. `progress(done, total)` is told rows. Ctrl-C, and
    what that raises, end the work with the file as it was.
    """
    if (rows is None) == (chunks is None):
        raise ValueError("either rows or chunks says how much to keep")
    if rows is None:
        chunks = chunks or 0
        with Reader(path, mmap=False) as reader:
            if not 0 <= chunks <= reader.nchunks:
                raise IndexError(f"{_path(path)} has {reader.nchunks} chunks, not {chunks}")
            rows = reader.chunk_infos[chunks - 1].stop if chunks else 0
    rows = arguments.index("rows", rows)
    if not 0 <= rows < 1 << 63:  # of more the core would take the low bits
        raise IndexError(f"{rows} rows cannot be kept")
    source, target, replace = _target(path, output, overwrite)
    refuse_hidden_chunks(source, _path(path))
    _cdd.truncate(source, target, replace, rows, progress)
    return rows


def compact(
    path: Name,
    output: Name | None = None,
    *,
    overwrite: bool = False,
    progress: Progress | None = None,
    **options: Unpack[ChunkOptions],
) -> tuple[int, int]:
    """Writes the rows anew in full chunks with the codecs that suit them now; returns bytes before and after.

    They go to `output`, else to a file that replaces this one, unless it would not be smaller: then this one
    stays. Rows do not change; float16 storage is not made again, so files that have it may grow. The options
    codec, profile (by default "dense"), zstd_level, chunk_bytes and chunk_rows are those of cdd.open(path,
    "w"); chunk_rows is by default what the file was created with.

    Raises ValueError for a codec that would round rows (okx_ob_f16), what reading raises for a damaged file,
    which then stays as it is, ChecksumError also when the file has whole chunks that its index does not show
    (repair() keeps them), and BlockingIOError when a writer has the file open that is to be replaced.
    `progress(done, total)` is told rows. Ctrl-C, and what that raises, end the work with the file as it was.
    """
    source, target, replace = _target(path, output, overwrite)
    in_place = output is None
    refuse_hidden_chunks(source, _path(path))
    return _cdd.compact(source, target, replace, in_place, {"profile": "dense", **options}, progress)


def _path(name: Name) -> str:
    return arguments.path(name, "a path")


def _is_same_file(a: str, b: str) -> bool:
    try:
        return Path(a).samefile(b)
    except FileNotFoundError:
        return False


def _target(path: Name, output: Name | None, overwrite: bool) -> tuple[str, str, bool]:
    """(source, target, whether the target may be there); through links, which are not to be replaced."""
    source = os.path.realpath(_path(path))
    if output is None:
        _refuse_superchunk(source)
        return source, source, True
    return source, _path(output), overwrite


_IN_PLACE = (
    "python -m cdd repair or compact DATASET, or cdd.dataset.transaction() change it there; or give an output"
)


def _refuse_superchunk(path: str) -> None:
    """A file that a dataset knows by its id would be another one for it. ValueError."""
    if is_in_dataset(Path(path)) or _is_superchunk(Path(path)):
        raise ValueError(f"{path} belongs to a dataset, which knows it by its id: {_IN_PLACE}")


def _is_superchunk(path: Path) -> bool:
    """By what it says of itself."""
    with suppress(_cdd.CddError), Reader(path, mmap=False) as reader:
        return reader.user_meta.startswith(b'{"dataset"')
    return False


def is_in_dataset(path: Path) -> bool:
    """Whether a path is that of a dataset's file, also of an adopted or damaged one: by where it lies."""
    parents = path.absolute().parents
    return path.name.startswith("__") and any(
        folder.name == "data" and (folder.parent / "meta" / "dataset.json").is_file() for folder in parents
    )
