"""The door: cdd.tiles.open, and how much memory a writer will take."""

import os
from typing import Any, Literal, Unpack, overload

from cdd import _cdd
from cdd.options import check_mode
from cdd.store.awaited import Opening
from cdd.threads import threads
from cdd.tiles.options import CODECS, TileOptions, check_names, for_core, resumable, shape_of
from cdd.tiles.pyramid import read_group
from cdd.tiles.reader import TileReader
from cdd.tiles.replacing import check_replaceable
from cdd.tiles.writer import TileWriter

__all__ = ["CODECS", "aopen", "bytes_needed", "open"]

_RESUMABLE = ("shape", "memory_bytes", "durability", "codec")


@overload
def open(path: str | os.PathLike[str], mode: Literal["r"] = "r", *, scale: int = 0) -> TileReader: ...
@overload
def open(
    path: str | os.PathLike[str], mode: Literal["w", "x", "a"], **options: Unpack[TileOptions]
) -> TileWriter: ...
def open(path: Any, mode: str = "r", **options: Any) -> TileReader | TileWriter:
    """Opens an array of tiles: a folder that any zarr v3 reader opens too.

    Modes
        "r"  reads (the default); returns a TileReader. Also arrays that others wrote, sharded or not, with
             the codecs blosc (zstd, lz4), zstd or none, with crc32c or without. scale=1: of a pyramid, the
             array half as large, and so on
        "w"  writes a new array and removes what is there, if it is an array, or a pyramid of them, and
             nothing else; returns a TileWriter
        "x"  writes a new array, FileExistsError when something is there
        "a"  goes on with an array that was closed, or left by a writer that was killed: after its last
             readable frame at least. FileNotFoundError where there is none

    Options of modes "w" and "x"
        shape                (None, 2048, 2048): None for a dimension 0 without an end. Needed
        dtype                NumPy's name or dtype. bool, (u)int8 to 64, float16 to 64, complex64, complex128;
                             with extensions=True bfloat16, datetime64 and timedelta64 of one unit, too:
                             not every zarr reader has them. Needed
        tile_shape="auto"    elements of a tile along each dimension. "auto": about 1 MiB, powers of two
        shard_shape=None     elements of a shard, one file: multiples of the tile. None: about 256 MiB raw
        codec="auto"         "auto": zstd level 1 on byte planes, and planes that are noise stored as they
                             are; "blosc-zstd", "blosc-lz4", "zstd", "raw"
        zstd_level=1         1 to 22 for "blosc-zstd", -7 to 22 for "zstd"
        shuffle="byte"       of the blosc codecs: "byte", "bit" or "none"
        checksum=None        a CRC-32C with each tile; None: where tiles are compressed
        fill_value=0         of elements that were never written
        dimension_names=None a name, or None, for each dimension: "tyx" will do
        attrs=None           a dict of what JSON has, for zarr.json
        shard_index="start"  shards can be read while they grow; "end": for tools that know nothing else, a
                             shard is readable once it is full or the array closed
        durability="batch"   what survives a power cut: "none" nothing for sure; "flush" what was there at the
                             last flush(); "batch" also all but the last second; "always" each layer of tiles.
                             A killed process alone loses what was not readable yet
        memory_bytes=None    a bound for pixels and tables, see bytes_needed(). None: planes for 1.25 layers
                             of tiles, and for a layer and a frame at least
        scales=1             how many arrays in all, each half the size of the one before, as a group with
                             OME-NGFF 0.5 metadata; "auto": until one tile holds all that is halved. Needs
                             dimension_names of t, c, z, y, x
        downsample=None      which dimensions are halved, "yx"; None: the last two but dimension 0
        reduce="mean"        how two items become one: "mean", "min", "max", "first"
        units=None, pixel_sizes=None    for the metadata: {"y": "micrometer"}, {"y": 0.65}
    Of mode "a" only shape (for the bound of dimension 0; its other numbers are those of the array),
    memory_bytes, durability; codec tells "auto" from "blosc-zstd", which leave no trace in an array.

    A reader sees frames once their layer of tiles (tile_shape[0] frames) is stored, at most a second after
    that while more come, or after flush().

    Raises ValueError or TypeError for wrong options, with the numbers; FileExistsError for what "w" and "x"
    do not replace; BlockingIOError when another writer has the array; OSError from the system; FormatError,
    ChecksumError, TruncatedError, UnsupportedError for what is no array, is damaged, or uses what cdd does
    not know.
    """
    check_mode(mode, "rwxa")
    if mode == "r":
        check_names(options, ("scale",), mode)
        return TileReader(path, **options)
    if mode == "a":
        return _resumed(os.fspath(path), options)
    prepared = for_core(options)
    if mode == "w":
        path = os.path.realpath(path) if os.path.islink(path) else path  # noqa: PTH114  the link stays
        check_replaceable(os.fspath(path))
    return TileWriter(path, mode, prepared)


def _resumed(path: str, options: dict[str, Any]) -> TileWriter:
    check_names(options, _RESUMABLE, "a")
    taken = dict(options)
    shape = taken.pop("shape", None)
    out = resumable(taken)
    if (codec := out.get("codec")) is not None:
        with TileReader(path) as reader:
            coded = reader.codec
        if codec not in (may := _codecs_of(coded)):
            raise ValueError(f"{path}: codec is {codec!r}, its tiles are {coded}: {' or '.join(may)}")
    if shape is not None:
        wanted = shape_of(shape)
        with TileReader(path) as reader:
            stored = reader.shape
        if wanted[1:] != stored[1:] or len(wanted) != len(stored):
            raise ValueError(f"{path}: shape is {tuple(shape)}, its frames are {stored[1:]}")
        out["bound"] = wanted[0]
    if (group := read_group(path)) is not None:
        if group.scales != [str(k) for k in range(len(group.scales))] or not group.halves:
            raise _cdd.UnsupportedError(f"{path}: only pyramids that cdd made are gone on with")
        out |= {"scales": len(group.scales), "halves": group.halves, "reduce": group.reduce}
    return TileWriter(path, "a", out)


def _codecs_of(coded: str) -> tuple[str, ...]:
    """The codecs of cdd.tiles.open() that make such tiles."""
    if "blosc" in coded:
        return ("blosc-lz4",) if "lz4" in coded else ("auto", "blosc-zstd")
    return ("zstd",) if "zstd" in coded else ("raw",)


def bytes_needed(**options: Unpack[TileOptions]) -> int:
    """Bytes that a writer with these options takes for pixels, tables and the threads that encode.

    With memory_bytes= the most that fits into it. ValueError where that is too little, with the least number.
    """
    return _cdd.tile_bytes_needed(for_core(options), threads())


def aopen(path: str | os.PathLike[str], mode: str = "r", **options: Any) -> Opening[Any]:
    """open() off the event loop: `async with cdd.tiles.aopen(...) as r`, or await it.

    Arguments and errors are those of open(), which a thread calls. Leaving the `async with` of a writer
    closes it off the loop, too.
    """
    return Opening(lambda: open(path, mode, **options))  # type: ignore[call-overload]
