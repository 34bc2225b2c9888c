"""Opening a store, and whole arrays in one call."""

from typing import Any, Literal, overload

import numpy as np
import numpy.typing as npt

from cdd import _cdd
from cdd.dtypes import Array
from cdd.store.reader import Out, Reader, Source
from cdd.store.writer import Target, Writer

CODECS = tuple(_cdd.codec_names.split(", "))
"""What codec= may be: "codec+compressor" is one way to store a chunk, "codec" leaves the compressor open."""

_OPTIONS = {
    "r": Reader.__init__.__kwdefaults__ or {},
    **dict.fromkeys("wxa", Writer.__init__.__kwdefaults__ or {}),
}


@overload
def open(
    source: Source,
    mode: Literal["r"] = "r",
    *,
    verify: Literal["stored", "once", "full", "none"] = "stored",
    mmap: bool | None = None,
    max_chunk_bytes: int = 1 << 31,
) -> Reader: ...
@overload
def open(
    source: Target,
    mode: Literal["w", "x", "a"],
    *,
    user_meta: bytes = b"",
    dtype: npt.DTypeLike | None = None,
    row_shape: tuple[int, ...] | None = None,
    codec: str = "auto",
    profile: Literal["fast", "dense"] = "fast",
    level: int = 3,
    chunk_bytes: int | None = None,
    chunk_rows: int | None = None,
    durability: Literal["none", "commit", "batch", "always"] = "batch",
    float16: bool = False,
    normalise: Literal["mid"] | None = None,
    size_scale: float = 1.0,
) -> Writer: ...
def open(source: Any, mode: str = "r", **options: Any) -> Reader | Writer:
    """Opens a store: a path, a cdd.Memory, or (mode "r") bytes that hold a whole cdd file.

    Modes
        "r"  reads (the default); returns a Reader
        "w"  writes a new store and replaces what is there, at once: save() does when all is written; returns
             a Writer
        "x"  writes a new store, FileExistsError when something is there
        "a"  appends to the store that is there, or writes a new one

    Options of mode "r"
        verify="stored"    which checks each read makes: "stored" the check over the stored bytes;
                           "once" also the BLAKE3 hash of the rows, the first time this reader touches a
                           chunk; "full" that one always; "none" no check (memory-safe even then)
        mmap=None          read files through a memory map, the fastest way, where the system has one; a file
                           that some other program truncates then kills the process (no cdd writer does).
                           False: read() calls; True: a map or an error
        max_chunk_bytes    refuse chunks of more raw bytes than this, for files from strangers (default 2 GiB)

    Options of modes "w", "x" and "a"
        user_meta=b""      your bytes, up to 64 MiB, stored once when the store is created
        dtype, row_shape   of the rows, given together; else the first append decides
        codec="auto"       how chunks are stored, one of cdd.CODECS; "auto" tries what suits the rows, takes
                           the best by profile; "okx_ob_f16", only when named, stores float16
        profile="fast"     what is best: "fast" weighs size against decoding time, "dense" is size alone, of
                           which windows of rows take two to six times as long
        level=3            of zstd, where it is used
        chunk_bytes=None   stored bytes of a chunk, about, by default 4096; smaller chunks: less to decode for
                           a short window
        chunk_rows=None    instead: rows of every chunk
        durability="batch" what survives a power cut, and how often the disk is synced: "none" never before
                           close(); "commit" at flush(); "batch" also every 64 chunks or second of appending;
                           "always" at every append. A killed process alone loses only rows that do not fill a
                           chunk yet and came since the last flush().
        float16=False      store (n, D, F) float32 books as float16, which loses precision (see
                           Writer.float16_error) and, on real books, is often larger than exact "levels";
                           it is a choice of each writer, not of the store. Readers get float32
        normalise=None     with float16: "mid" stores the first feature as price / mid - 1, mid being that of
                           the two innermost levels, first or last of each half; readers get prices back
        size_scale=1.0     with float16: the other features are divided by this first, and multiplied back

    Raises FileNotFoundError, PermissionError, ... (OSError) from the system, BlockingIOError when another
    writer has the store open, FormatError for what is no cdd file, UnsupportedError for one of a newer
    version, and TruncatedError or ChecksumError for damage to what is needed to open it.
    """
    _check_options(mode, options)
    if mode == "r":
        return Reader(source, **options)
    if isinstance(source, bytes | bytearray | memoryview):
        raise TypeError("bytes can only be read: write to a path or a cdd.Memory")
    return Writer(source, mode, **options)


def _check_options(mode: str, options: dict[str, Any]) -> None:
    if not isinstance(mode, str) or mode not in _OPTIONS:
        raise ValueError(f'mode is "r", "w", "x" or "a", not {mode!r}')
    for name in options:
        if name in _OPTIONS[mode]:
            continue
        modes = [f'"{other}"' for other, names in _OPTIONS.items() if name in names]
        if modes:
            raise TypeError(f'{name}= is an option of mode {", ".join(modes)}, not of mode "{mode}"')
        raise TypeError(f'{name}= is no option; those of mode "{mode}" are {", ".join(_OPTIONS[mode])}')


def save(path: Target, array: npt.ArrayLike, **options: Any) -> None:
    """Writes an array as a new store, replacing what is there: only when it is whole, until then (and when
    it fails) a file of that name stays what it was. Options and errors as cdd.open(path, "w")."""
    array = np.asanyarray(array)
    if array.ndim == 0:
        raise ValueError("a scalar has no rows: save an array whose first dimension counts them")
    options = {"dtype": array.dtype, "row_shape": array.shape[1:], **options}
    _check_options("w", options)
    writer = Writer(path, "w" if isinstance(path, _cdd.Memory) else "s", **options)
    try:
        writer.append(array)
        writer.close()
    except BaseException:
        writer._core.give_up()
        raise


@overload
def load(path: Source, out: None = None, **options: Any) -> Array: ...
@overload
def load(path: Source, out: Out, **options: Any) -> Out: ...
def load(path: Source, out: Any = None, **options: Any) -> Any:
    """All rows of a store, as an array or into `out` (see Reader.read). Options as cdd.open(path)."""
    _check_options("r", options)
    with Reader(path, **options) as reader:
        return reader.read(out=out)
