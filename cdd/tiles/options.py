"""Options of a writer of tiles: their names and types, and what the core takes for them."""

import json
import math
import operator
from collections.abc import Mapping, Sequence
from typing import Any, Literal, TypedDict

import numpy as np
import numpy.typing as npt

from cdd import attrs as attributes
from cdd.arguments import shown
from cdd.dtypes import DType, code_of, named
from cdd.tiles import pyramid

CODECS = ("auto", "blosc-zstd", "blosc-lz4", "zstd", "raw")

TILE_BYTES = 1 << 20  # "auto" aims at this
SHARD_BYTES = 256 << 20
SHARD_TILES = 1 << 12  # at most, where tiles are small: an index of 64 KiB


class TileOptions(TypedDict, total=False):
    """Of modes "w" and "x"; "a" takes memory_bytes, durability and shape alone."""

    shape: Sequence[int | None]
    dtype: npt.DTypeLike
    tile_shape: Sequence[int] | Literal["auto"]
    shard_shape: Sequence[int] | None
    codec: Literal["auto", "blosc-zstd", "blosc-lz4", "zstd", "raw"]
    zstd_level: int
    shuffle: Literal["byte", "bit", "none"]
    checksum: bool | None
    fill_value: Any
    dimension_names: Sequence[str | None] | None
    attrs: Mapping[str, Any] | None
    shard_index: Literal["start", "end"]
    durability: Literal["batch", "none", "flush", "always"]
    memory_bytes: int | None
    extensions: bool
    scales: int | Literal["auto"]
    downsample: str | Sequence[str | int] | None
    reduce: Literal["mean", "min", "max", "first"]
    units: Mapping[str, str] | None
    pixel_sizes: Mapping[str, float] | None


def _size(value: Any, what: str, least: int = 1) -> int:
    try:
        number = operator.index(value)
    except TypeError:
        raise TypeError(f"{what} is a whole number, not {shown(value)}") from None
    if number < least:
        raise ValueError(f"{what} is {number}, {least} or more is allowed")
    return number


def sizes(values: Any, what: str, rank: int) -> tuple[int, ...]:
    """One number of 1 or more a dimension."""
    try:
        out = tuple(values)
    except TypeError:
        raise TypeError(f"{what} has a number a dimension, not {shown(values)}") from None
    if len(out) != rank:
        raise ValueError(f"{what} has {len(out)} numbers, the array {rank} dimensions")
    return tuple(_size(value, f"{what}[{d}]") for d, value in enumerate(out))


def shape_of(shape: Any) -> tuple[int, ...]:
    """The shape as the core takes it: 0 for an unbounded dimension 0."""
    try:
        out = tuple(shape)
    except TypeError:
        raise TypeError(f"shape is a tuple, (None, ...) for an unbounded one, not {shown(shape)}") from None
    if not out:
        raise ValueError("shape has at least one dimension")
    first = 0 if out[0] is None else _size(out[0], "shape[0]")
    return first, *(_size(value, f"shape[{d + 1}]") for d, value in enumerate(out[1:]))


def auto_tile(shape: tuple[int, ...], item_bytes: int) -> tuple[int, ...]:
    """Powers of two of about TILE_BYTES, the last two dimensions alike, and frames where they are small."""
    tile = [1] * len(shape)
    grown = list(range(len(shape) - 1, -1, -1))
    while math.prod(tile) * item_bytes < TILE_BYTES:
        wider = [d for d in grown if shape[d] == 0 or tile[d] < shape[d]]
        if not wider:
            break
        # The smallest of the last two first, then those before them.
        near = [d for d in wider if d >= len(shape) - 2 and d > 0 and tile[d] < 512]
        best = min(near, key=lambda d: tile[d]) if near else wider[-1] if 0 in wider else wider[0]
        tile[best] *= 2
    return tuple(tile)


def auto_shard(shape: tuple[int, ...], tile: tuple[int, ...], item_bytes: int) -> tuple[int, ...]:
    """Tiles a shard along each dimension, of about SHARD_BYTES: all of a layer first, then more layers."""
    counts = [1] * len(shape)
    tile_bytes = math.prod(tile) * item_bytes
    for d in [*range(len(shape) - 1, 0, -1), 0]:
        along = -(-shape[d] // tile[d]) if shape[d] else 1 << 30
        tiles = math.prod(counts)
        room = max(1, min(SHARD_BYTES // (tile_bytes * tiles), SHARD_TILES // tiles))
        counts[d] = min(along, room)
    return tuple(counts)


def _shard_tiles(
    shard: Any, shape: tuple[int, ...], tile: tuple[int, ...], item_bytes: int
) -> tuple[int, ...]:
    if shard is None:
        return auto_shard(shape, tile, item_bytes)
    wanted = sizes(shard, "shard_shape", len(shape))
    for d, (whole, part) in enumerate(zip(wanted, tile, strict=True)):
        if whole % part:
            raise ValueError(f"shard_shape[{d}] is {whole}, no multiple of the tile's {part}")
    return tuple(whole // part for whole, part in zip(wanted, tile, strict=True))


def _names(names: Any, rank: int) -> tuple[str, ...]:
    given = tuple(names)
    if len(given) != rank:
        raise ValueError(f"dimension_names has {len(given)} names, the array {rank} dimensions")
    for name in given:
        if name is not None and not isinstance(name, str):
            raise TypeError(f"dimension_names are str or None, not {shown(name)}")
    named = [name for name in given if name]
    if len(set(named)) != len(named):
        raise ValueError(f"dimension_names are {given}, each name stands for one dimension")
    return tuple(name or "" for name in given)


def fill_bytes(value: Any, dtype: DType) -> bytes:
    """One item. ValueError for what the dtype cannot hold exactly as an integer, bool or time."""
    if dtype.kind in "mM" and isinstance(value, int | np.integer) and not isinstance(value, bool):
        return np.array(value, "<i8").tobytes()
    try:
        item = (
            np.array(value).astype(dtype, casting="unsafe") if dtype.kind in "fcV" else np.array(value, dtype)
        )
    except (OverflowError, ValueError, TypeError) as error:
        raise ValueError(f"fill_value {shown(value)} is no value of {dtype}: {error}") from None
    if item.ndim:
        raise ValueError(f"fill_value is one item, not an array of shape {item.shape}")
    if dtype.kind in "iub" and item != value:
        raise ValueError(f"fill_value {shown(value)} is no value of {dtype}")
    # NumPy drops what is finer than the unit.
    if dtype.kind in "mM" and not np.isnat(item) and np.array(value, dtype.type) != item:
        raise ValueError(f"fill_value {shown(value)} is no value of {dtype}")
    return item.astype(dtype.newbyteorder("<")).tobytes()


def dtype_of_option(dtype: Any, extensions: bool) -> DType:
    try:
        found = named(dtype).newbyteorder("=")
        if found.type is np.void and found.names is None and found.subdtype is None:
            raise TypeError("for items of raw bytes store uint8, with one dimension more")
        if found.kind in "mM" and np.datetime_data(found)[0] == "generic":
            raise TypeError('it lacks a unit, which "datetime64[ns]" has')
        code_of(found)
    except TypeError as error:
        raise TypeError(f"dtype {shown(dtype)}: {error}") from None
    if (found.kind in "mM" or found.name == "bfloat16") and not extensions:
        raise ValueError(f"dtype {found} is an extension that not every zarr reader has: extensions=True")
    return found


def check_names(options: Mapping[str, Any], known: Sequence[str], mode: str) -> None:
    for name in options:
        if name not in known:
            raise TypeError(f'{name}= is no option of mode "{mode}"; those are {", ".join(known)}')


def for_core(options: Mapping[str, Any]) -> dict[str, Any]:
    """The options of a new array as the core takes them."""
    check_names(options, tuple(TileOptions.__annotations__), "w")
    for name in ("shape", "dtype"):
        if options.get(name) is None:
            raise TypeError(f"{name}= is needed for a new array")
    taken = dict(options)
    dtype = dtype_of_option(taken.pop("dtype"), bool(taken.pop("extensions", False)))
    shape = shape_of(taken.pop("shape"))
    tile = taken.pop("tile_shape", "auto")
    tile = auto_tile(shape, dtype.itemsize) if isinstance(tile, str) and tile == "auto" else tile
    tile = sizes(tile, "tile_shape", len(shape))
    out: dict[str, Any] = {
        "shape": shape,
        "tile": tile,
        "shard_tiles": _shard_tiles(taken.pop("shard_shape", None), shape, tile, dtype.itemsize),
        "dtype": code_of(dtype),
        "fill": fill_bytes(taken.pop("fill_value", 0), dtype),
    }
    names = taken.pop("dimension_names", None)
    if names is not None:
        out["dimension_names"] = _names(names, len(shape))
    attrs = taken.pop("attrs", None)
    if attrs is not None:
        attributes.encoded(attrs)  # refuses what JSON has not
    checksum = taken.pop("checksum", None)
    if checksum is not None:
        if not isinstance(checksum, bool | np.bool_):
            raise TypeError(f"checksum is True, False or None, not {shown(checksum)}")
        out["checksum"] = int(checksum)
    if dtype.kind in "mM" and taken.get("scales", 1) != 1:
        raise ValueError(f"scales= is {shown(taken['scales'])}: times, as {dtype}, have no smaller scales")
    out |= _scales(taken, names, shape, tile, attrs)
    if attrs is not None and "group" not in out:
        out["attributes"] = json.dumps(dict(attrs), ensure_ascii=False)
    return out | resumable(taken)


def _scales(
    taken: dict[str, Any], names: Any, shape: tuple[int, ...], tile: tuple[int, ...], attrs: Any
) -> dict[str, Any]:
    """Takes the options of a pyramid out of `taken`; nothing where there is one scale."""
    scales, downsample, reduce = (
        taken.pop("scales", 1),
        taken.pop("downsample", None),
        taken.pop("reduce", None),
    )
    units, pixel_sizes = taken.pop("units", None), taken.pop("pixel_sizes", None)
    for what, value in (("units", units), ("pixel_sizes", pixel_sizes)):
        if value is not None and not isinstance(value, Mapping):
            raise TypeError(f"{what} is a dict with names of dimensions, not {shown(value)}")
    if scales == 1:
        given = {"downsample": downsample, "reduce": reduce, "units": units, "pixel_sizes": pixel_sizes}
        for what, value in given.items():
            if value is not None:
                raise ValueError(f"{what}= is of a pyramid, which scales=2 or more makes")
        return {}
    if reduce == "median":
        raise ValueError('reduce="median" cannot be made frame by frame: "mean", "min", "max", "first" can')
    if reduce is None:
        reduce = "mean"
    elif reduce not in ("mean", "min", "max", "first"):
        raise ValueError(f'reduce is one of "mean", "min", "max", "first", not {shown(reduce)}')
    named = None if names is None else tuple(names)
    halves = pyramid.halved_dimensions(downsample, named, len(shape))
    count = pyramid.scale_count(scales, shape, tile, halves)
    if count == 1:
        return {}
    group = pyramid.group_json(named, count, halves, reduce, units, pixel_sizes, attrs)
    return {"scales": count, "halves": halves, "reduce": reduce, "group": group}


def resumable(options: Mapping[str, Any]) -> dict[str, Any]:
    """What is left of the options: those that cross the border as they are."""
    out = {name: value for name, value in options.items() if value is not None}
    for name in ("codec", "shuffle", "shard_index", "durability"):
        if name in out and not isinstance(out[name], str):
            raise TypeError(f"{name} is a str, not {shown(out[name])}")
    if "memory_bytes" in out:
        out["memory_bytes"] = _size(out["memory_bytes"], "memory_bytes")
    if "zstd_level" in out:
        try:
            out["zstd_level"] = operator.index(out["zstd_level"])
        except TypeError:
            raise TypeError(f"zstd_level is a whole number, not {shown(out['zstd_level'])}") from None
    return out
