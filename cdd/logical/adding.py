"""Members of a logical array: made of rows, found where they are, grown or compacted since."""

import os
import secrets
from collections.abc import Mapping
from dataclasses import replace as replaced
from pathlib import Path
from typing import Any, TypedDict, Unpack

import numpy as np

import cdd
from cdd import arguments
from cdd.dtypes import Array as NumpyArray
from cdd.dtypes import DType, array_of
from cdd.logical.array import Array
from cdd.logical.backends import Underway
from cdd.logical.digests import blocks, first_difference, grown
from cdd.logical.errors import LogicalError, MemberError, ReadOnlyMemberError
from cdd.logical.extras import zarr
from cdd.logical.manifest import Member
from cdd.logical.members import Places, source_of
from cdd.logical.origins import home_of
from cdd.logical.plan import Reading

COPY_BYTES = 64 << 20  # of rows in memory while a member is written


class Box:
    """A box of a logical array as a source of rows."""

    def __init__(self, reading: Reading, picks: list[range]) -> None:
        self._reading, self._picks = reading, picks
        self.shape = tuple(map(len, picks))
        self.dtype = reading.manifest.dtype

    def __getitem__(self, key: slice) -> NumpyArray:
        return self._reading.read([self._picks[0][key], *self._picks[1:]])


def new_name() -> str:
    """A member's name, never used before: two appenders never write to the same place."""
    return f"m{secrets.token_hex(8)}"


def rows_of(rows: Any, shape: tuple[int, ...] | None, dtype: DType, ndim: int = 0) -> Any:
    """What is appended, with shape, dtype and []. ValueError or TypeError where it does not fit."""
    if not all(hasattr(rows, name) for name in ("shape", "dtype", "__getitem__")):
        rows = array_of(rows)
    found = tuple(rows.shape)
    if shape is not None and (len(found) != len(shape) or found[1:] != shape[1:]):
        raise ValueError(f"rows of shape {arguments.shape_of_rows(shape[1:])} are appended, not {found}")
    if shape is None and len(found) != ndim:
        raise ValueError(f"{ndim} dimensions are wanted, the values have {len(found)}")
    if not np.can_cast(np.dtype(rows.dtype), dtype, "same_kind"):
        raise TypeError(f"{rows.dtype} does not cast to {dtype} by same_kind")
    return rows


class Storing(TypedDict, total=False):
    """How a new member is stored; WritableArray.append() says what each is."""

    chunks: tuple[int, ...] | None
    shards: tuple[int, ...] | None
    path: str | os.PathLike[str] | None
    options: Mapping[str, Any] | None


def new_member(
    array: Array, underway: Underway, rows: Any, start: int, codec: Any, **how: Unpack[Storing]
) -> Member:
    """A member that holds rows[start:]."""
    group = array._reading.places.group
    if codec is None:
        codec = "cdd" if group is None else {}
    of_zarr, of_cdd = ("chunks", "shards"), ("path", "options")
    for name in of_zarr if codec == "cdd" else of_cdd:
        if how.get(name) is not None:
            raise TypeError(
                f"{name}= is {'of zarr arrays' if codec == 'cdd' else 'of .cdd files'}, codec is {codec!r}"
            )
    if codec == "cdd":
        return _new_cdd(array, underway, rows, start, dict(how.get("options") or {}), how.get("path"))
    if not isinstance(codec, Mapping):
        raise TypeError(f'codec is None, "cdd" or a mapping of options, not {arguments.shown(codec)}')
    if group is None:
        raise LogicalError('a JSON file has no zarr group: codec="cdd" makes a .cdd file')
    return _new_zarr(array, underway, rows, start, dict(codec), how.get("chunks"), how.get("shards"))


def _new_zarr(
    array: Array,
    underway: Underway,
    rows: Any,
    start: int,
    options: dict[str, Any],
    chunks: tuple[int, ...] | None,
    shards: tuple[int, ...] | None,
) -> Member:
    name = new_name()
    shape = (int(rows.shape[0]) - start, *(int(size) for size in rows.shape[1:]))
    if chunks is None and "chunks" not in options:
        wanted = (
            array.chunks if shards is None else [min(a, b) for a, b in zip(array.chunks, shards, strict=True)]
        )
        chunks = tuple(max(1, min(chunk, size)) for chunk, size in zip(wanted, shape, strict=True))
    if chunks is not None:
        options["chunks"] = chunks
    if shards is not None:
        options["shards"] = shards
    if array.dims is not None:
        options.setdefault("dimension_names", array.dims)
    group = array._reading.places.group
    made = group.create_array(name, shape=shape, dtype=array.dtype, **options)
    underway.made(lambda: group.__delitem__(name))
    unit = (made.shards or made.chunks)[0]
    row_bytes = max(1, int(np.prod(shape[1:], dtype=float)) * array.itemsize)
    step = max(1, COPY_BYTES // row_bytes // unit) * unit
    for first in range(0, shape[0], step):
        last = min(first + step, shape[0])
        block = np.asarray(rows[start + first : start + last])
        made[first:last] = block.astype(array.dtype, casting="same_kind", copy=False)
    return Member(name, "zarr", shape, name)


def _new_cdd(
    array: Array, underway: Underway, rows: Any, start: int, options: dict[str, Any], path: Any
) -> Member:
    name = new_name()
    if array.dtype != array.dtype.newbyteorder("="):
        raise LogicalError(f".cdd files have this machine's byte order, the array is {array.dtype.str}")
    trust = array._reading.places.trust
    if path is None:
        if trust.home is None:
            raise LogicalError("there is no folder of members on a disk: path= says where the .cdd file goes")
        Path(trust.home).mkdir(exist_ok=True)
        file, kept = str(Path(trust.home, f"{name}.cdd")), f"{name}.cdd"
    else:
        file = str(Path(os.fspath(path)).absolute())
        kept = kept_path(array, file)
        array._show(array._reading.at(granting(array, kept, file)))
    options.setdefault("dtype", array.dtype)
    options.setdefault("row_shape", tuple(int(size) for size in rows.shape[1:]))
    with cdd.open(file, "x", **options) as writer:
        underway.made(Path(file).unlink)
        for _, block in blocks(rows, start, int(rows.shape[0]), COPY_BYTES):
            writer.append(block.astype(array.dtype, casting="same_kind", copy=False))
    with cdd.open(file) as reader:
        shape, ident = reader.shape, id_of(reader)
    return Member(name, "cdd", shape, kept, ident)


def id_of(opened: Any) -> str | None:
    found = getattr(opened, "id", None)
    return found if isinstance(found, str) else None


def kept_path(array: Array, path: str) -> str:
    """How a path is kept in the manifest; MemberError where a reader could not be allowed to open it."""
    trust = array._reading.places.trust
    real = Path(path).resolve()
    if trust.home is not None:
        for place in (Path(trust.home), Path(trust.home).parent):
            if real.is_relative_to(place.resolve()):
                return real.relative_to(place.resolve()).as_posix()
    if not any("://" not in place and real.is_relative_to(Path(place).resolve()) for place in trust.allow):
        raise MemberError(
            f"{path!r} is not below the folder in which the manifest is: it is kept as it is only with "
            f"allow=[{str(real.parent)!r}]"
        )
    return real.as_posix()


def pinned(member: Member, opened: Any, rows: int, digest: bool | None) -> Member:
    """The member with so many rows, and digests of them where they are wanted."""
    if member.kind == "zarr":
        return member  # of the same group: it is versioned with the manifest
    wanted = member.kind in ("cdd", "dataset") if digest is None else digest and member.kind != "named"
    digests = grown((), opened, rows) if wanted else ()
    return replaced(member, shape=(rows, *member.shape[1:]), digests=digests)


def granting(array: Array, kept: str, path: str) -> Places:
    """The array's places, which open that path, too: the program named it."""
    places = array._reading.places
    trust = places.trust
    return replaced(places, trust=replaced(trust, granted=(*trust.granted, (kept, path))))


def existing_member(
    array: Array, member: Any, column: str | None, name: str | None
) -> tuple[Member, Any, Places]:
    """The member's description, the array itself, and the places that open it."""
    places = array._reading.places
    if isinstance(member, cdd.Reader):
        if member.path is None:
            raise MemberError("a reader of a file is wanted: what is in memory has no path")
        member = member.path
    if isinstance(member, str | os.PathLike):
        return _at_path(array, os.fspath(member), column)
    if column is not None:
        raise TypeError("column is of a dataset, which is given by its path")
    if type(member).__module__.partition(".")[0] == "zarr" and hasattr(member, "store_path"):
        return _of_zarr(array, member)
    if name is None:
        raise TypeError(
            "a member is a path, a zarr array or a cdd.Reader; for another array name= says how readers "
            f"call it: {arguments.shown(member)}"
        )
    shape = tuple(int(size) for size in member.shape)
    made = Member(name, "named", shape)
    places = replaced(places, named={**places.named, name: member})
    _check(array, made, member)
    return made, source_of(member, shape).array, places


def _check(array: Array, member: Member, opened: Any) -> None:
    if np.dtype(opened.dtype) != array.dtype:
        raise MemberError(f"{member.path or member.name!r} has dtype {opened.dtype}, the array {array.dtype}")
    if len(opened.shape) != array.ndim or tuple(opened.shape[1:]) != array.shape[1:]:
        raise MemberError(
            f"{member.path or member.name!r} has shape {tuple(opened.shape)}, rows of "
            f"{arguments.shape_of_rows(array.shape[1:])} are wanted"
        )


def _at_path(array: Array, path: str, column: str | None) -> tuple[Member, Any, Places]:
    if "://" in path:
        opened = zarr().open_array(path, mode="r")
        array._reading.places.trust.find(path, path)
        made = Member(new_name(), "zarr-external", tuple(opened.shape), path)
        _check(array, made, opened)
        return made, opened, array._reading.places
    full = Path(path).resolve()
    if not full.exists():
        raise FileNotFoundError(2, "no member", path)
    kept = kept_path(array, str(full))
    places = granting(array, kept, str(full))
    if full.is_file():
        reader = cdd.open(str(full))
        made = Member(new_name(), "cdd", reader.shape, kept, id_of(reader))
        _check(array, made, reader)
        return made, reader, places
    if column is not None:
        from cdd import dataset

        table = dataset.open(str(full), allow=array._reading.places.trust.directories)
        opened = table[column]
        made = Member(new_name(), "dataset", tuple(opened.shape), kept, id_of(table), column)
    else:
        opened = zarr().open_array(str(full), mode="r")
        made = Member(new_name(), "zarr-external", tuple(opened.shape), kept)
    _check(array, made, opened)
    return made, opened, places


def _of_zarr(array: Array, member: Any) -> tuple[Member, Any, Places]:
    places = array._reading.places
    group = places.group
    if group is not None and member.store == group.store:
        prefix = f"{group.path}/" if group.path else ""
        if not member.path.startswith(prefix):
            raise MemberError(f"{member.path!r} is not below the group {group.path!r}: move it there")
        inner = member.path.removeprefix(prefix)
        made = Member(new_name(), "zarr", tuple(member.shape), inner, read_only=is_virtual(member))
        _check(array, made, member)
        return made, member, places
    home = home_of(member.store)
    if home is None:
        raise MemberError(f"{member} is in a store without a path: readers could not find it")
    return _at_path(array, str(Path(home, member.path)), None)


def is_virtual(member: Any) -> bool:
    """Whether an array of an icechunk repository has chunks that lie in other files."""
    session = getattr(member.store, "session", None)
    if session is None or not session.all_virtual_chunk_locations():
        return False
    kinds = (session.chunk_type(f"/{member.path}", list(at)) for at in np.ndindex(member.cdata_shape))
    return any("virtual" in str(kind).lower() for kind in kinds)


def compare_rows(opened: Any, against: Any, member: Member) -> None:
    """MemberError for the first block of the member's rows in which `against` differs, bit for bit."""
    if tuple(against.shape[1:]) != member.shape[1:] or against.shape[0] < member.shape[0]:
        raise MemberError(
            f"member {member.name!r} has shape {member.shape}, not {tuple(against.shape)}", member.name
        )
    for first, rows in blocks(opened, 0, member.shape[0]):
        other = np.asarray(against[first : first + len(rows)])
        if other.dtype != rows.dtype or other.tobytes() != rows.tobytes():
            raise MemberError(
                f"member {member.name!r}: rows {first} to {first + len(rows)} are not what they were",
                member.name,
            )


def completing(array: Array, rows: Any) -> tuple[int, Member | None]:
    """How many of the rows lengthen the last member, up to the grid, and that member."""
    end, unit = array.shape[0], array.manifest.grid[0]
    missing = min(-end % unit, int(rows.shape[0]))
    last = [region for region in array.regions if region.hi[0] == end]
    if missing == 0 or len(last) != 1 or last[0].lo[1:] != (0,) * (array.ndim - 1):
        return 0, None
    region = last[0]
    (number,) = (n for n, member in enumerate(array.manifest.members) if member.name == region.member)
    member = array.manifest.members[number]
    sharing = sum(other.member == member.name for other in array.regions)
    within = region.at[0] + end - region.lo[0]
    if (
        region.hi[1:] != array.shape[1:]
        or member.kind != "zarr"
        or member.read_only
        or sharing > 1
        or within != member.shape[0]
    ):
        return 0, None
    # One that was there before may have grown since: those rows are not ours. One that transactions made has
    # more rows after one that was given up.
    opened = array._reading.source(number).array
    is_own = member.path == member.name
    return (missing, member) if is_own or opened.shape[0] == within else (0, None)


def lengthened(array: Array, member: Member, rows: Any, missing: int) -> Member:
    """The zarr member with the first rows of these at its end."""
    shape = (member.shape[0] + missing, *member.shape[1:])
    block = np.asarray(rows[:missing]).astype(array.dtype, copy=False)
    opened = array._reading.source(array.manifest.members.index(member)).array
    opened.resize(shape)
    opened[member.shape[0] :] = block
    return replaced(member, shape=shape)


def grown_member(array: Array, member: Member, rows: int | None) -> Member:
    """The member at the array's end with the rows that were appended to it since, up to `rows` of its own."""
    if member.kind in ("zarr", "named"):
        raise ReadOnlyMemberError(
            f"member {member.name!r} is of kind {member.kind!r}: append() lengthens it", member.name
        )
    opened = array._reading.places.open(member, array.dtype)
    try:
        available = int(opened.array.shape[0])
        end = available if rows is None else arguments.size("rows", rows, member.shape[0], available)
        if end <= member.shape[0]:
            return member
        digests = grown(member.digests, opened.array, end) if member.digests else ()
    finally:
        opened.close()
    return replaced(member, shape=(end, *member.shape[1:]), digests=digests)


def repinned(array: Array, member: Member, against: Any) -> Member:
    """The member with the id of the file that is in its place now, if that has the same rows."""
    if member.kind not in ("cdd", "dataset"):
        raise MemberError(
            f"member {member.name!r} is of kind {member.kind!r}: only files have an id", member.name
        )
    opened = array._reading.places.open(replaced(member, id=None), array.dtype)
    try:
        if against is not None:
            compare_rows(opened.array, against, member)
        elif not member.digests or member.digests[-1][0] < member.shape[0]:
            raise MemberError(
                f"member {member.name!r} has no digest of its rows: repin(member, against=array) compares "
                "them",
                member.name,
            )
        elif (differs := first_difference(member.digests, opened.array)) is not None:
            raise MemberError(
                f"member {member.name!r}: rows {differs[0]} to {differs[1]} are not what they were",
                member.name,
            )
        return replaced(member, id=id_of(opened.array))
    finally:
        opened.close()
