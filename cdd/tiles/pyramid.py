"""Several scales of one array as a group: how many there are, and OME-NGFF 0.5's words for them."""

import json
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from cdd import _cdd
from cdd.arguments import shown

_TYPES = {"t": "time", "c": "channel", "z": "space", "y": "space", "x": "space"}
_MOST_SCALES = 32
_METADATA_BYTES = 16 << 20


def halved_dimensions(downsample: Any, names: Sequence[str | None] | None, rank: int) -> tuple[int, ...]:
    """1 for each dimension that a scale has half of, else 0. None: the last two but dimension 0."""
    if downsample is None:
        return tuple(int(d > 0 and d >= rank - 2) for d in range(rank))
    out = [0] * rank
    for one in downsample:
        if isinstance(one, str):
            if names is None or one not in names:
                raise ValueError(f"downsample names {one!r}, dimension_names are {names}")
            out[tuple(names).index(one)] = 1
        elif isinstance(one, int) and -rank <= one < rank:
            out[one] = 1
        else:
            raise ValueError(f"downsample has {shown(one)}, names of dimensions or their numbers are wanted")
    if not any(out):
        raise ValueError("downsample names no dimension")
    return tuple(out)


def scale_count(scales: Any, shape: Sequence[int], tile: Sequence[int], halves: Sequence[int]) -> int:
    """ "auto": until all that is halved fits one tile; an unbounded dimension 0 does not count."""
    if isinstance(scales, str):
        if scales != "auto":
            raise ValueError(f'scales is a number or "auto", not {scales!r}')
        count = 1
        sizes = list(shape)
        while count < _MOST_SCALES and any(h and s > t for s, t, h in zip(sizes, tile, halves, strict=True)):
            sizes = [-(-s // 2) if h else s for s, h in zip(sizes, halves, strict=True)]
            count += 1
        return count
    if not isinstance(scales, int) or not 1 <= scales <= _MOST_SCALES:
        raise ValueError(f'scales is 1 to {_MOST_SCALES} or "auto", not {shown(scales)}')
    return scales


def _axes(names: Sequence[str | None] | None, units: Mapping[str, str]) -> list[dict[str, str]]:
    wanted = "dimension_names of t, c, z, y, x in this order are needed, y and x at least"
    if names is None or any(name not in _TYPES for name in names):
        raise ValueError(f"a pyramid is OME-NGFF, for which {wanted}; they are {names}")
    order = ["tczyx".index(str(name)) for name in names]
    if order != sorted(set(order)) or not {"y", "x"} <= set(names):
        raise ValueError(f"{wanted}, not {tuple(names)}")
    if unknown := set(units) - set(names):
        raise ValueError(f"units has {sorted(unknown)}, dimension_names are {tuple(names)}")
    return [
        {"name": str(name), "type": _TYPES[str(name)]} | ({"unit": units[str(name)]} if name in units else {})
        for name in names
    ]


def group_json(
    names: Sequence[str | None] | None,
    scales: int,
    halves: Sequence[int],
    reduce: str,
    units: Mapping[str, str] | None,
    pixel_sizes: Mapping[str, float] | None,
    attrs: Mapping[str, Any] | None,
) -> str:
    """zarr.json of the group. An item of scale k is the middle of 2**k items: so far its place is moved."""
    axes = _axes(names, units or {})
    sizes = pixel_sizes or {}
    for name, size in sizes.items():
        if name not in (axis["name"] for axis in axes):
            raise ValueError(f"pixel_sizes has {name!r}, dimension_names are {names}")
        if not (isinstance(size, int | float) and math.isfinite(size) and size > 0):
            raise ValueError(f"pixel_sizes[{name!r}] is {shown(size)}, a number above 0 is wanted")
    base = [float(sizes.get(axis["name"], 1.0)) for axis in axes]
    datasets = []
    for k in range(scales):
        factors = [2**k if h else 1 for h in halves]
        transformations: list[dict[str, Any]] = [
            {"type": "scale", "scale": [b * f for b, f in zip(base, factors, strict=True)]}
        ]
        moved = 0.0 if reduce == "first" else 0.5
        translation = [moved * (f - 1) * b for b, f in zip(base, factors, strict=True)]
        if any(translation):
            transformations.append({"type": "translation", "translation": translation})
        datasets.append({"path": str(k), "coordinateTransformations": transformations})
    multiscale = {
        "name": "image",
        "axes": axes,
        "datasets": datasets,
        "type": reduce,
        "metadata": {"method": "cdd.tiles", "reduce": reduce, "halves": list(halves)},
    }
    attributes = dict(attrs or {}) | {"ome": {"version": "0.5", "multiscales": [multiscale]}}
    group = {"zarr_format": 3, "node_type": "group", "attributes": attributes}
    return json.dumps(group, indent=2, ensure_ascii=False)


class Group:
    """What zarr.json of a pyramid says."""

    def __init__(
        self, scales: list[str], halves: tuple[int, ...], reduce: str, attrs: dict[str, Any]
    ) -> None:
        self.scales, self.halves, self.reduce, self.attrs = scales, halves, reduce, attrs


def read_group(path: str) -> Group | None:
    """The pyramid at `path`; None where an array is, or nothing. FormatError for a group that is none."""
    try:
        with Path(path, "zarr.json").open("rb") as file:
            text = file.read(_METADATA_BYTES + 1)
    except (FileNotFoundError, NotADirectoryError):
        return None
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        return None  # the core says what is wrong with it
    if not isinstance(found, dict) or found.get("node_type") != "group":
        return None
    attrs = found.get("attributes")
    attrs = attrs if isinstance(attrs, dict) else {}
    try:
        multiscale = attrs["ome"]["multiscales"][0]
        paths = [str(dataset["path"]) for dataset in multiscale["datasets"]]
        metadata = multiscale.get("metadata") or {}
        halves = tuple(int(bool(h)) for h in metadata.get("halves", ()))
        reduce = str(metadata.get("reduce", "mean"))
    except (KeyError, IndexError, TypeError, AttributeError) as error:
        raise _cdd.FormatError(f"{path}: a zarr group that is no OME-NGFF multiscale image") from error
    if not paths or any(not p or p.startswith("/") or ".." in p.split("/") for p in paths):
        raise _cdd.FormatError(f"{path}: its multiscales name {paths}, paths within the group are wanted")
    return Group(paths, halves, reduce, attrs)
