"""The manifest: which region of a logical array lies in which member.

It is read strictly, and all that it says is checked before any member is opened: here each region for itself,
in regions.Layout all of them together. docs/formats/logical.md is its specification.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import Any, NamedTuple

import numpy as np

from cdd.dtypes import Array, DType, code_of, named
from cdd.logical.errors import AlignmentError, ManifestError
from cdd.manifests import Field, text_of

VERSION = 1
ATTRIBUTE = "cdd:logical"  # of the zarr group that holds the members; the only field of a JSON file
MAX_BYTES = 16 << 20  # of JSON, with the attribute's name
MAX_REGIONS = 1 << 16
MAX_DIMS = 8
MAX_SIZE = 1 << 62  # of a dimension, and of all elements
KINDS = ("zarr", "cdd", "zarr-external", "dataset", "named")

_FIELDS = ("version", "min_reader", "shape", "dtype", "grid", "chunks", "members", "regions")
_OPTIONAL = ("fill_value", "dimension_names", "attributes")
_MEMBER_OPTIONAL = ("path", "id", "column", "read_only", "digests")


class Region(NamedTuple):
    """A box of a logical array, [lo, hi) along each dimension, and where it lies in its member."""

    lo: tuple[int, ...]
    hi: tuple[int, ...]
    member: str
    at: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Member:
    """One of the arrays that a logical one is made of."""

    name: str
    kind: str  # one of KINDS
    shape: tuple[int, ...]  # of a member that grows: its rows at the time of the commit
    path: str = ""  # within the group (zarr); of the file, store or dataset; unused by "named"
    id: str | None = None  # 32 hexadecimal digits of the file's salt (cdd), or the dataset's id
    column: str | None = None  # of a dataset
    read_only: bool = False  # a zarr array whose chunks are virtual references
    digests: tuple[tuple[int, str], ...] = ()  # see digests.py


@dataclass(frozen=True)
class Manifest:
    """A manifest that was read, or is to be written. Regions are arrays of one row each, for speed."""

    shape: tuple[int, ...]
    dtype: DType
    grid: tuple[int, ...]
    chunks: tuple[int, ...]
    members: tuple[Member, ...] = ()
    lo: Array = field(default_factory=lambda: np.empty((0, 0), np.int64))
    hi: Array = field(default_factory=lambda: np.empty((0, 0), np.int64))
    at: Array = field(default_factory=lambda: np.empty((0, 0), np.int64))
    owner: Array = field(default_factory=lambda: np.empty(0, np.int64))  # numbers of members
    fill_value: Any = None  # a scalar of dtype; None: regions cover everything
    dimension_names: tuple[str | None, ...] | None = None
    attributes: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        code_of(self.dtype)  # raises TypeError for what cdd does not store

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def size(self) -> int:
        """Elements."""
        return math.prod(self.shape)

    def regions(self) -> list[Region]:
        rows = zip(self.lo.tolist(), self.hi.tolist(), self.at.tolist(), self.owner.tolist(), strict=True)
        return [
            Region(tuple(lo), tuple(hi), self.members[owner].name, tuple(at)) for lo, hi, at, owner in rows
        ]

    def with_regions(
        self, regions: list[Region], members: tuple[Member, ...] | None = None, **changes: Any
    ) -> "Manifest":
        """This manifest with other regions, of `members` or of its own; checked as one that was read."""
        members = self.members if members is None else members
        number = {member.name: at for at, member in enumerate(members)}
        bounds = [
            np.array([getattr(region, name) for region in regions], np.int64).reshape(-1, self.ndim)
            for name in ("lo", "hi", "at")
        ]
        owner = np.array([number[region.member] for region in regions], np.int64)
        made = replace(
            self,
            members=members,
            lo=bounds[0],
            hi=bounds[1],
            at=bounds[2],
            owner=owner,
            **changes,
        )
        _check_regions(made)
        return made

    def to_json(self) -> dict[str, Any]:
        """What read() makes this manifest of."""
        found: dict[str, Any] = {
            "version": VERSION,
            "min_reader": 1,
            "shape": list(self.shape),
            "dtype": dtype_text(self.dtype),
            "grid": list(self.grid),
            "chunks": list(self.chunks),
        }
        if self.fill_value is not None:
            found["fill_value"] = fill_text(self.fill_value, self.dtype)
        if self.dimension_names is not None:
            found["dimension_names"] = list(self.dimension_names)
        if self.attributes:
            found["attributes"] = dict(self.attributes)
        found["members"] = [_member_json(member) for member in self.members]
        at = self.at.tolist()
        found["regions"] = [
            {"lo": lo, "hi": hi, "member": owner, **({"at": at[number]} if any(at[number]) else {})}
            for number, (lo, hi, owner) in enumerate(
                zip(self.lo.tolist(), self.hi.tolist(), self.owner.tolist(), strict=True)
            )
        ]
        return found


def _member_json(member: Member) -> dict[str, Any]:
    found: dict[str, Any] = {"name": member.name, "kind": member.kind, "shape": list(member.shape)}
    if member.path:
        found["path"] = member.path
    if member.id is not None:
        found["id"] = member.id
    if member.column is not None:
        found["column"] = member.column
    if member.read_only:
        found["read_only"] = True
    if member.digests:
        found["digests"] = [list(digest) for digest in member.digests]
    return found


def checked_json(manifest: Manifest) -> dict[str, Any]:
    """to_json(), as read() accepts it. ManifestError where it is too large."""
    found = manifest.to_json()
    size = len(text_of(found).encode())
    if size > MAX_BYTES:
        raise ManifestError(f"the manifest is {size:,} bytes of JSON, {MAX_BYTES:,} are allowed")
    return found


def dtype_text(dtype: DType) -> str:
    return "bfloat16" if dtype.name == "bfloat16" else dtype.str


def read(value: Any, what: str = "the manifest") -> Manifest:
    """The manifest of a decoded JSON object, named `what` in errors.

    Raises ManifestError, AlignmentError, and UnsupportedError for one of a newer version.
    """
    whole = Field(value, "", ManifestError, what)
    whole.check_version(VERSION)
    fields = whole.object(_FIELDS, _OPTIONAL)
    ndim = fields["shape"].length(1, MAX_DIMS)
    shape = fields["shape"].integers(ndim, 0, MAX_SIZE)
    if math.prod(shape) >= MAX_SIZE:
        fields["shape"].fail(f"fewer than 2**62 elements are allowed, these are {math.prod(shape):,}")
    dtype = _read_dtype(fields["dtype"])
    grid = fields["grid"].integers(ndim, 1, MAX_SIZE)
    chunks = fields["chunks"].integers(ndim, 1, MAX_SIZE)
    for number, (unit, chunk) in enumerate(zip(grid, chunks, strict=True)):
        if chunk % unit:
            raise AlignmentError(f"chunks[{number}] is {chunk}: not a multiple of grid {unit}")
    names: tuple[str | None, ...] | None = None
    if "dimension_names" in fields:
        items = fields["dimension_names"].items(ndim, ndim)
        names = tuple(None if item.value is None else item.text(256) for item in items)
    attributes: Any = fields["attributes"].value if "attributes" in fields else {}
    if not isinstance(attributes, dict):
        fields["attributes"].fail("an object is wanted")
    members = tuple(_read_member(item, ndim) for item in fields["members"].items(MAX_REGIONS))
    if len({member.name for member in members}) < len(members):
        seen: set[str] = set()
        for number, member in enumerate(members):
            if member.name in seen:
                fields["members"].at(number, member.name).fail("another member has that name")
            seen.add(member.name)
    fill = _read_fill(fields["fill_value"], dtype) if "fill_value" in fields else None
    lo, hi, at, owner = _read_regions(fields["regions"], ndim, len(members))
    made = Manifest(shape, dtype, grid, chunks, members, lo, hi, at, owner, fill, names, attributes)
    _check_regions(made)
    return made


def _read_dtype(item: Field) -> DType:
    text = item.text(32)
    try:
        dtype = named(text)
        code_of(dtype)
    except (TypeError, ValueError):
        item.fail("a dtype of cdd is wanted, as NumPy's dtype.str")
    if dtype_text(dtype) != text:
        item.fail(f'"{dtype_text(dtype)}" is how that dtype is written')
    return dtype


def _read_member(item: Field, ndim: int) -> Member:
    fields = item.object(("name", "kind", "shape"), _MEMBER_OPTIONAL)
    name, kind = fields["name"].text(256), fields["kind"].choice(KINDS)
    if not name or "/" in name or name in (".", "..") or not name.isprintable():
        fields["name"].fail("a printable name without slashes is wanted")
    shape = fields["shape"].integers(ndim, 0, MAX_SIZE)
    path = fields["path"].text(4096) if "path" in fields else ""
    if (kind == "named") != (path == ""):
        wanted = "is named by the program and has no path" if path else "has a path"
        raise item.error(f"{item.path}: a member of kind {kind} {wanted}")
    if "\0" in path or ".." in path.replace("\\", "/").split("/"):
        fields["path"].fail('a path without ".." and null bytes is wanted')
    if kind == "zarr" and (path.startswith("/") or "\\" in path or "" in path.split("/")):
        fields["path"].fail("the path of an array within the group is wanted")
    ident = _read_hex(fields["id"]) if "id" in fields else None
    column = fields["column"].text(256) if "column" in fields else None
    if (kind == "dataset") != (column is not None):
        raise item.error(f'{item.path}: a member of kind "dataset" has a column, one of no other kind has')
    read_only = fields["read_only"].flag() if "read_only" in fields else False
    digests = _read_digests(fields["digests"], shape[0]) if "digests" in fields else ()
    return Member(name, kind, shape, path, ident, column, read_only, digests)


def _read_hex(item: Field) -> str:
    text = item.text(32)
    if len(text) != 32 or set(text) - set("0123456789abcdef"):
        item.fail("32 hexadecimal digits are wanted")
    return text


def _read_digests(item: Field, rows: int) -> tuple[tuple[int, str], ...]:
    found: list[tuple[int, str]] = []
    for digest in item.items(4096, 1):
        digest.length(2, 2)
        number, text = digest.items(2, 2)
        least = found[-1][0] + 1 if found else 1
        if least > rows:
            item.fail(f"the member has {rows:,} rows")
        found.append((number.integer(least, rows), _read_hex(text)))
    return tuple(found)


def _read_regions(item: Field, ndim: int, members: int) -> tuple[Array, Array, Array, Array]:
    count = item.length(0, MAX_REGIONS)
    known = {"lo", "hi", "member", "at"}
    zeros = [0] * ndim
    try:  # as arrays, since there may be many; whatever does not fit is looked for one by one
        bounds = [[r["lo"] for r in item.value], [r["hi"] for r in item.value]]
        bounds.append([r.get("at", zeros) for r in item.value])
        owners = [r["member"] for r in item.value]
        numbers = chain(owners, *(chain.from_iterable(rows) for rows in bounds))
        if set(map(type, numbers)) <= {int} and all(r.keys() <= known for r in item.value):
            lo, hi, at = (np.array(rows, np.int64).reshape(count, ndim) for rows in bounds)
            owner = np.array(owners, np.int64)
            inside = (lo >= 0).all() and (at >= 0).all() and (at <= MAX_SIZE).all()
            if inside and (owner >= 0).all() and (owner < members).all():
                return lo, hi, at, owner
    except (TypeError, KeyError, ValueError, AttributeError, OverflowError):
        pass
    found: list[list[Any]] = [[], [], [], []]
    for region in item.items(MAX_REGIONS):
        fields = region.object(("lo", "hi", "member"), ("at",))
        for rows, name in zip(found, ("lo", "hi", "at"), strict=False):
            rows.append(fields[name].integers(ndim, 0, MAX_SIZE) if name in fields else zeros)
        if members == 0:
            fields["member"].fail("there are no members")
        found[3].append(fields["member"].integer(0, members - 1))
    lo, hi, at = (np.array(rows, np.int64).reshape(count, ndim) for rows in found[:3])
    return lo, hi, at, np.array(found[3], np.int64)


def _check_regions(manifest: Manifest) -> None:
    """How many there are; each region for itself: within the array, on the grid, within its member."""
    for what, count in (("regions", len(manifest.lo)), ("members", len(manifest.members))):
        if count > MAX_REGIONS:
            raise ManifestError(f"there are {count:,} {what}, {MAX_REGIONS:,} are allowed")
    lo, hi, at, grid = manifest.lo, manifest.hi, manifest.at, np.array(manifest.grid, np.int64)
    if len(lo) == 0:
        return

    def refuse(bad: Array, bounds: Array, name: str, wanted: str, error: type[Exception]) -> None:
        if bad.any():
            row, dim = (int(i) for i in np.argwhere(bad)[0])
            text = wanted.format(grid=manifest.grid[dim], size=manifest.shape[dim], lo=lo[row, dim])
            raise error(f"regions[{row}].{name}[{dim}] is {bounds[row, dim]}: {text}")

    ends = np.array(manifest.shape, np.int64)
    refuse(hi > ends, hi, "hi", "the array ends at {size}", ManifestError)
    refuse(lo >= hi, hi, "hi", "a region's end is above its lo, {lo}", ManifestError)
    refuse(lo % grid != 0, lo, "lo", "not a multiple of grid {grid}", AlignmentError)
    off = (hi % grid != 0) & (hi != ends)
    refuse(off, hi, "hi", "not a multiple of grid {grid}", AlignmentError)
    shapes = np.array([member.shape for member in manifest.members], np.int64)
    beyond = at + (hi - lo) > shapes[manifest.owner]
    if beyond.any():
        row, dim = (int(i) for i in np.argwhere(beyond)[0])
        member = manifest.members[int(manifest.owner[row])]
        raise ManifestError(
            f"regions[{row}] ends at {at[row, dim] + hi[row, dim] - lo[row, dim]} along dimension {dim} of "
            f"its member {member.name!r}, whose shape is {member.shape}"
        )


# ------------------------------------------------------------ fill values


def fill_text(value: Any, dtype: DType) -> str:
    """A scalar of `dtype` as a text that gives back its very bits."""
    scalar = np.asarray(value, dtype)
    if dtype.kind == "b":
        return "true" if scalar else "false"
    if dtype.kind in "iu":
        return str(int(scalar))
    if dtype.kind in "mM":
        return "NaT" if np.isnat(scalar) else str(int(scalar.view(_integer(dtype))))
    if dtype.kind != "c":
        number = float(scalar)
        text = {"nan": "NaN", "inf": "Infinity", "-inf": "-Infinity"}.get(repr(number), repr(number))
        if _parse_fill(text, dtype).tobytes() == scalar.tobytes():
            return text
    bits = scalar.view(_bits(dtype)).astype(_bits(dtype).newbyteorder(">")).tobytes()
    return f"0x{bits.hex()}"


def _bits(dtype: DType) -> DType:
    """A dtype of the same memory that NumPy can put in another byte order."""
    return dtype if dtype.kind in "fc" else np.dtype(np.uint16)


def _integer(dtype: DType) -> DType:
    return np.dtype(f"{dtype.str[0]}i8")


def _parse_fill(text: str, dtype: DType) -> Array:
    """A 0-dimensional array. ValueError or OverflowError for a text that is none."""
    if dtype.kind == "b":
        return np.array({"true": True, "false": False}[text])
    if dtype.kind in "iu":
        return np.array(_decimal(text), dtype)
    if dtype.kind in "mM":
        return (
            np.array("NaT", dtype) if text == "NaT" else np.array(_decimal(text), _integer(dtype)).view(dtype)
        )
    if text.startswith("0x"):
        bits = bytes.fromhex(text[2:])
        if len(bits) != dtype.itemsize:
            raise ValueError(f"{dtype.itemsize} bytes are wanted")
        item = _bits(dtype)
        return np.frombuffer(bits, item.newbyteorder(">")).astype(item).view(dtype).reshape(())
    if dtype.kind == "c":
        raise ValueError("bits are wanted")
    words = {"NaN": "nan", "Infinity": "inf", "-Infinity": "-inf"}
    if text not in words and not set(text) <= set("0123456789+-.e"):
        raise ValueError("no number")
    number = float(words.get(text, text))
    if math.isinf(number) and text not in words:
        raise ValueError("too large")
    with np.errstate(over="raise"):
        return np.array(number).astype(dtype)


def _decimal(text: str) -> int:
    if not text.removeprefix("-").isascii() or not text.removeprefix("-").isdigit():
        raise ValueError("no decimal integer")
    return int(text)


def _read_fill(item: Field, dtype: DType) -> Any:
    text = item.text(64)
    try:
        return _parse_fill(text, dtype)[()]
    except (ValueError, OverflowError, KeyError, FloatingPointError):
        item.fail(f'a {dtype} is wanted, as a text: "NaN", "-Infinity", a number, or "0x" and the bits of it')
