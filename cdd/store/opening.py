"""Opening a store, and whole arrays in one call."""

import os
from pathlib import Path
from typing import Any, Literal, Unpack, overload

import numpy as np
import numpy.typing as npt

from cdd import _cdd, arguments
from cdd.dtypes import Array
from cdd.options import ReaderOptions, WriterOptions, check_mode, check_names
from cdd.store.awaited import Opening
from cdd.store.maintenance import is_in_dataset
from cdd.store.reader import Out, Reader, Source
from cdd.store.writer import Target, Writer

CODECS = tuple(_cdd.codec_names.split(", "))
"""What codec= may be: "codec+compressor" is one way to store a chunk, "codec" leaves the compressor open."""


@overload
def open(source: Source, mode: Literal["r"] = "r", **options: Unpack[ReaderOptions]) -> Reader: ...
@overload
def open(source: Target, mode: Literal["w", "x", "a"], **options: Unpack[WriterOptions]) -> Writer: ...
def open(source: Any, mode: str = "r", **options: Any) -> Reader | Writer:
    """Opens a store: a path or a file: URL, a cdd.Memory, or (mode "r") bytes that hold a whole cdd file, as
    bytes, an mmap.mmap and whatever else has a buffer lends them.

    Modes
        "r"  reads (the default); returns a Reader
        "w"  writes a new store and replaces what is there, at once: save() does when all is written; returns
             a Writer
        "x"  writes a new store, FileExistsError when something is there
        "a"  appends to the store that is there, or writes a new one: also in place of an empty file

    Options of mode "r"
        check="stored"     which checks each read makes: "stored" the check over the stored bytes;
                           "once" also the BLAKE3 hash of the rows, the first time this reader touches a
                           chunk; "full" that one always; "none" no check (memory-safe even then)
        mmap=None          read files through a memory map, the fastest way, where the system has one; a file
                           that some other program truncates then kills the process (no cdd writer does).
                           False: read() calls; True: a map or an error
        max_chunk_bytes    refuse chunks of more raw bytes than this, for files from strangers (default 2 GiB)

    Options of modes "w", "x" and "a"
        attrs=None         a dict of what JSON can say, up to 64 MiB of it, stored once when the store is
                           created; readers and writers have it as .attrs
        user_meta=b""      instead of attrs: your own bytes
        dtype, row_shape   of the rows, given together; else the first append decides
        codec="auto"       how chunks are stored, one of cdd.CODECS; "auto" tries what suits the rows, takes
                           the best by profile; "okx_ob_f16", only when named, stores float16
        profile="fast"     what is best: "fast" weighs size against decoding time, "dense" is size alone, of
                           which windows of rows take two to six times as long
        zstd_level=3       1 to 22, where zstd is used
        chunk_bytes=None   stored bytes of a chunk, about, by default 4096; smaller chunks: less to decode for
                           a short window
        chunk_rows=None    instead: rows of every chunk
        durability="batch" what survives a power cut, and how often the disk is synced: "none" never before
                           close(); "flush" at flush(); "batch" also every 64 chunks or second of appending;
                           "always" at every append. A killed process alone loses only rows that do not fill a
                           chunk yet and came since the last flush().
        visible="open"     when a new store gets its name: "open" at once; "close" when the writer is closed,
                           until then what was there stays, and it stays for good when a `with` block ends by
                           an exception (modes "w" and "x")
        index_chunks=128   chunks of a new store's first index block, each next one is twice as long: a power
                           of two up to 2^20. A file has 32 bytes for each, used or not
        float16=False      store (n, D, F) float32 books as float16, which loses precision (see
                           Writer.float16_error) and, on real books, is often larger than exact "levels";
                           it is a choice of each writer, not of the store. Readers get float32
        normalise=None     with float16: "mid" stores the first feature as price / mid - 1, mid being that of
                           the two innermost levels, first or last of each half; readers get prices back
        size_scale=1.0     with float16: the other features are divided by this first, and multiplied back

    Raises FileNotFoundError, PermissionError, ... (OSError) from the system, BlockingIOError when another
    writer has the store open, FormatError for what is no cdd file, UnsupportedError for one of a newer
    version, and TruncatedError or ChecksumError for damage to what is needed to open it. A file of a dataset
    can only be read: ValueError for modes "w", "x" and "a".
    """
    check_mode(mode, "rwxa")
    check_names(mode, options)
    if mode == "r":
        try:
            return Reader(source, **options)
        except IsADirectoryError as error:
            if (Path(os.fsdecode(source)) / "meta" / "dataset.json").is_file():
                text = "this folder is a dataset, which cdd.dataset.open() reads"
                raise IsADirectoryError(error.errno, text, source) from None
            raise
    if not isinstance(source, _cdd.Memory) and arguments.content(source) is not None:
        raise TypeError(
            "bytes are a store's content, which can only be read: write to a cdd.Memory or a path, "
            "which os.fsdecode() makes of bytes"
        )
    if not isinstance(source, _cdd.Memory):
        _refuse_superchunk(source)
    return Writer(source, mode, **options)


def _refuse_superchunk(path: Any) -> None:
    real = os.path.realpath(arguments.path(path, "a path or a cdd.Memory to be written"))
    if is_in_dataset(Path(real)):
        raise ValueError(
            f"{real} belongs to a dataset, which knows it by its id: cdd.dataset.open(path, 'a') appends to "
            "all columns of one, cdd.dataset.transaction() changes rows"
        )


@overload
def aopen(source: Source, mode: Literal["r"] = "r", **options: Unpack[ReaderOptions]) -> Opening[Reader]: ...
@overload
def aopen(
    source: Target, mode: Literal["w", "x", "a"], **options: Unpack[WriterOptions]
) -> Opening[Writer]: ...
def aopen(source: Any, mode: str = "r", **options: Any) -> Any:
    """cdd.open() off the event loop: `async with cdd.aopen(...) as r`, or r = await cdd.aopen(...).

    Arguments and errors are those of cdd.open(), which a thread calls, so recovering a file after a crash
    keeps no other task waiting. Leaving the `async with` of a writer flushes and closes off the loop, too.
    """

    def open_store() -> Reader | Writer:
        return open(source, mode, **options)  # type: ignore[call-overload, no-any-return]

    return Opening(open_store)


def save(path: Target, array: npt.ArrayLike, **options: Any) -> None:
    """Writes an array as a new store, replacing what is there: only when it is whole, until then (and when
    it fails) a file of that name stays what it was. Options and errors as cdd.open(path, "w")."""
    given, array = array, np.asanyarray(array)
    if array.ndim == 0:
        raise ValueError(f"an array whose first dimension counts rows is saved, not {arguments.shown(given)}")
    if 0 in array.shape[1:]:
        raise ValueError(f"an array of shape {array.shape} has no items in its rows: it cannot be saved")
    if not isinstance(path, _cdd.Memory):
        _refuse_superchunk(path)
    options = {"dtype": array.dtype, "row_shape": array.shape[1:], **options}
    with Writer(path, "w", **{"visible": "close", **options}) as writer:
        writer.append(array)


@overload
def load(path: Source, out: None = None, **options: Any) -> Array: ...
@overload
def load(path: Source, out: Out, **options: Any) -> Out: ...
def load(path: Source, out: Any = None, **options: Any) -> Any:
    """All rows of a store, as an array or into `out` (see Reader.read). Options as cdd.open(path)."""
    with Reader(path, **options) as reader:
        return reader.read(out=out)
