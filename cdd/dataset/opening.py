"""Opening a dataset."""

import os
from collections.abc import Mapping, Sequence
from typing import Any, Literal, overload

from cdd.dataset.collecting.writer import DatasetWriter
from cdd.dataset.opened import Dataset
from cdd.dataset.options import options_of
from cdd.dataset.protocol.directory import Directory, directory_of
from cdd.dataset.protocol.identity import DATASET, clear, create
from cdd.store.awaited import Opening

Place = str | os.PathLike[str] | Directory

_READING: dict[str, Any] = {
    "as_of": None,
    "columns": None,
    "check": "stored",
    "mmap": None,
    "max_open": None,
    "max_chunk_bytes": 1 << 31,
    "allow": (),
}
_WRITING: dict[str, Any] = {
    "clock": "time",
    "columns": None,
    "superchunk_bytes": 64 << 20,
    "tail_bytes": 1 << 20,
    "roll": None,
    "commit_every": None,
    "order": "nondecreasing",
    "durability": "batch",
    "attrs": None,
}


@overload
def open(
    place: Place,
    mode: Literal["r"] = "r",
    *,
    as_of: Any = None,
    columns: Sequence[str] | None = None,
    check: str = "stored",
    mmap: bool | None = None,
    max_open: int | None = None,
    max_chunk_bytes: int = 1 << 31,
    allow: Sequence[str | os.PathLike[str]] = (),
) -> Dataset: ...
@overload
def open(
    place: Place,
    mode: Literal["w", "x", "a"],
    *,
    clock: str | Mapping[str, str | None] | None = "time",
    columns: Mapping[str, Mapping[str, Any]] | None = None,
    superchunk_bytes: int = 64 << 20,
    tail_bytes: int = 1 << 20,
    roll: Any = None,
    commit_every: Any = None,
    order: str = "nondecreasing",
    durability: str = "batch",
    attrs: Mapping[str, Any] | None = None,
) -> DatasetWriter: ...
def open(place: Any, mode: str = "r", **options: Any) -> Dataset | DatasetWriter:
    """Opens a dataset: the path of its folder, or a Directory.

    Modes
        "r"  reads (the default); returns a Dataset
        "w"  writes a new dataset and removes the one that is there
        "x"  writes a new dataset, FileExistsError when there is one
        "a"  appends to the dataset that is there, or writes a new one; returns a DatasetWriter, as w and x

    Options of mode "r"
        as_of=None          the version: a number, a Version, a tag, or a time (the last one not later). None:
                            the newest, and what was flushed since
        columns=None        names of the only columns to be shown
        check="stored"      which checks each read makes, as of cdd.open
        mmap=None           whether files are mapped, as of cdd.open
        max_open=None       files that are open at once; None: half of what the system lets this process open
        max_chunk_bytes     refuse chunks of more raw bytes than this
        allow=()            folders below which superchunks may lie that were attached from elsewhere

    Options of modes "w", "x" and "a"
        clock="time"        the column that orders the rows of a new table, where it has one of that name;
                            None: none; {table: column} for several. It is int64, uint64 or datetime64
        columns=None        {name: options} of new columns: codec, profile, zstd_level, chunk_bytes,
                            chunk_rows, float16, normalise and size_scale as of cdd.open; codes="uint32" (or
                            uint8, uint16) of a column of texts
        order               of a new table's clock: "nondecreasing", "strict" or "any"
        superchunk_bytes    stored bytes of a file before the next is begun (default 64 MiB)
        tail_bytes          of one that was flushed often, which is rewritten then (default 1 MiB)
        roll=None           a time such as "1D": files also end where the clock passes a whole one
        commit_every=None   a time or a number of rows: flush() commits when it is over, append() when there
                            are so many
        durability="batch"  as of cdd.open
        attrs=None          attributes of the dataset, to be set

    Raises FileNotFoundError where there is no dataset, FileExistsError where a writer's folder holds other
    files, or those of a dataset that lost meta/dataset.json, FormatError for one that is damaged,
    UnsupportedError for one of a newer version, VersionNotFoundError and VersionExpiredError for as_of=.
    """
    allowed = {"r": _READING, "w": _WRITING, "x": _WRITING, "a": _WRITING}
    if mode not in allowed:
        raise ValueError(f'mode is "r", "w", "x" or "a", not {mode!r}')
    for name in options:
        if name not in allowed[mode]:
            raise TypeError(f'{name}= is no option of mode "{mode}": those are {", ".join(allowed[mode])}')
    if mode == "r":
        return Dataset(place, **options)
    directory = directory_of(place)
    checked = options_of(**{**_WRITING, **options})
    is_there = directory.size(DATASET) is not None
    if mode == "x" and is_there:
        raise FileExistsError(17, "there is a dataset already", directory.name)
    if mode == "w" or not is_there:
        clear(directory, replaces=mode == "w")
        create(directory)
    return DatasetWriter(directory, checked)


def aopen(place: Any, mode: str = "r", **options: Any) -> Opening[Any]:
    """open() off the event loop: `async with cdd.dataset.aopen(...) as ds`, or await it.

    Arguments and errors are those of open(), which a thread calls. Leaving the `async with` of a writer
    commits and closes off the loop, too.
    """
    return Opening(lambda: open(place, mode, **options))  # type: ignore[call-overload]
