"""Members that go on living elsewhere: rows that were appended since, files that were compacted."""

from typing import TYPE_CHECKING, Any

from cdd import arguments
from cdd.logical import adding
from cdd.logical.digests import first_difference, grown
from cdd.logical.errors import LogicalError, MemberError, ReadOnlyMemberError

if TYPE_CHECKING:
    from cdd.logical.manifest import Member
    from cdd.logical.writing import WritableArray


def grow(array: "WritableArray", member: str | None, rows: int | None) -> int:
    """WritableArray.grow()."""
    last = [region for region in array.regions if region.hi[0] == array.shape[0] and array.shape[0]]
    if len(last) != 1 or (member is not None and last[0].member != member):
        raise LogicalError(
            f"{'no member' if member is None else f'not {member!r}'} holds the array's end, alone"
        )
    region = last[0]
    found = array._member(region.member)
    if found.kind in ("zarr", "named"):
        raise ReadOnlyMemberError(
            f"member {found.name!r} is of kind {found.kind!r}: append() lengthens it", found.name
        )
    opened = array._reading.places.open(found, array.dtype)
    try:
        available = int(opened.array.shape[0])
        end = available if rows is None else arguments.size("rows", rows, found.shape[0], available)
        more = end - found.shape[0]
        if more <= 0 or region.at[0] + region.hi[0] - region.lo[0] != found.shape[0]:
            return 0
        digests = grown(found.digests, opened.array, end) if found.digests else ()
    finally:
        opened.close()
    _put(array, found, adding.replaced(found, shape=(end, *found.shape[1:]), digests=digests), more)
    return more


def repin(array: "WritableArray", member: str, against: Any) -> None:
    """WritableArray.repin()."""
    found = array._member(member)
    if found.kind not in ("cdd", "dataset"):
        raise MemberError(f"member {member!r} is of kind {found.kind!r}: only files have an id", member)
    opened = array._reading.places.open(adding.replaced(found, id=None), array.dtype)
    try:
        if against is not None:
            adding.compare_rows(opened.array, against, found)
        elif not found.digests or found.digests[-1][0] < found.shape[0]:
            raise MemberError(
                f"member {member!r} has no digest of its rows: repin(member, against=array) compares them",
                member,
            )
        else:
            differs = first_difference(found.digests, opened.array)
            if differs is not None:
                raise MemberError(
                    f"member {member!r}: rows {differs[0]} to {differs[1]} are not what they were", member
                )
        ident = adding.id_of(opened.array)
    finally:
        opened.close()
    _put(array, found, adding.replaced(found, id=ident), 0)


def _put(array: "WritableArray", old: "Member", new: "Member", more: int) -> None:
    """The array with a member in the place of another, and with so many more rows of it at the end."""
    manifest, end = array.manifest, array.shape[0]
    members = tuple(new if other is old else other for other in manifest.members)
    regions = [
        region._replace(hi=(end + more, *region.hi[1:])) if region.hi[0] == end else region
        for region in array.regions
    ]
    array._change(manifest.with_regions(regions, members, shape=(end + more, *array.shape[1:])))
