"""WritableArray: a logical array within a transaction. Nothing of it is seen by readers before the commit."""

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from types import EllipsisType
from typing import Any, Unpack

import numpy as np
import numpy.typing as npt

from cdd import arguments
from cdd.attrs import encoded
from cdd.indexing import select
from cdd.logical import adding
from cdd.logical.adding import Storing
from cdd.logical.array import Array
from cdd.logical.backends import Underway
from cdd.logical.errors import (
    AlignmentError,
    CoverageError,
    CrossRegionError,
    LogicalError,
    MemberError,
    ReadOnlyMemberError,
)
from cdd.logical.manifest import Manifest, Member, Region
from cdd.logical.members import ZarrSource
from cdd.logical.plan import Piece, Reading
from cdd.logical.regions import Layout, cut_within_chunks
from cdd.logical.virtual import virtual_members


def _is_of_a_box(part: Any) -> bool:
    """Whether a part of a key is a number, a slice, ... or None: not a list or a mask, whatever it picks."""
    is_number = hasattr(part, "__index__") and np.ndim(part) == 0 and not isinstance(part, bool | np.bool_)
    return is_number or isinstance(part, slice | None | EllipsisType)


class WritableArray(Array):
    """A logical array within a transaction: all of Array, and what changes it.

    Written are zarr members of its own group. .cdd files, zarr arrays elsewhere, columns of datasets and
    virtual references are read only: replace() moves a region of them to a member that can be written.
    """

    def __init__(self, underway: Underway, name: str, manifest: Manifest, is_new: bool) -> None:
        super().__init__(manifest, places=underway.backend.places(name))
        self._name = name
        self.changed = is_new
        self._underway = underway

    @property
    def name(self) -> str:
        return self._name

    def __reduce__(self) -> tuple[Any, ...]:
        raise TypeError("an array of a transaction cannot be pickled")

    def refresh(self) -> bool:
        """Nothing to look for: the transaction is what changes it."""
        return False

    def _change(self, manifest: Manifest, places: Any = None) -> None:
        """Goes on with another manifest; its regions are checked before anything is changed."""
        self._check_under_way()
        self._show(Reading(manifest, places or self._reading.places, self._reading))
        self.changed = True

    def set_attrs(self, **attributes: Any) -> None:
        """Sets attributes of the array, of what JSON has; None removes one."""
        kept = {name: value for name, value in (self.attrs | attributes).items() if value is not None}
        encoded(kept)  # raises for what JSON does not have
        self._change(self.manifest.with_regions(self.regions, attributes=kept))

    # ------------------------------------------------------------ values

    def __setitem__(self, key: Any, value: npt.ArrayLike) -> None:
        self.write(key, value)

    def write(self, key: Any, value: npt.ArrayLike, split: bool = False) -> None:
        """Writes a box: key is made of numbers, slices, ... and None, `value` is broadcast as NumPy does it.

        CrossRegionError where the box touches several regions, unless split=True; ReadOnlyMemberError where a
        region's member is only read; CoverageError where elements are in no region; TypeError where the value
        would not cast by "same_kind". In each case nothing was written. A plain zarr store shows the values
        to readers at once, not at the commit.
        """
        self._check_under_way()
        selection = select(key, self.shape)
        if not all(map(_is_of_a_box, key if isinstance(key, tuple) else (key,))):
            raise IndexError(
                "a write's key is made of numbers, slices, ... and None: lists and masks only read"
            )
        block = np.empty(selection.counts, self.dtype)
        view = block[selection.rest if Ellipsis in selection.rest else (*selection.rest, ...)]
        np.copyto(view, value, casting="same_kind")
        if block.size == 0:
            return
        pieces = self._reading.pieces(selection.picks)
        self._check_writable(pieces, block.size, split)
        owner = self._reading.layout.owner
        for number, picks, place in pieces:
            source = self._reading.source(owner[number])
            assert isinstance(source, ZarrSource)
            source.write(picks, block[place])

    def _check_writable(self, pieces: list[Piece], size: int, split: bool) -> None:
        layout = self._reading.layout
        names = [self.manifest.members[layout.owner[number]].name for number, _, _ in pieces]
        boxes = [
            f"{name!r} {layout.text(number)}" for name, (number, _, _) in zip(names, pieces, strict=True)
        ]
        if len(pieces) > 1 and not split:
            raise CrossRegionError(
                f"the value lies in {len(pieces)} regions, {', '.join(boxes[:4])}: "
                "write(key, value, split=True) writes all of them"
            )
        if sum(int(np.prod([len(pick) for pick in picks])) for _, picks, _ in pieces) < size:
            raise CoverageError("the value lies partly in no region: add one for it first")
        for name, box, (number, _, _) in zip(names, boxes, pieces, strict=True):
            member = self.manifest.members[layout.owner[number]]
            if member.kind != "zarr" or member.read_only:
                raise ReadOnlyMemberError(
                    f"member {box} is {'virtual' if member.read_only else f'of kind {member.kind!r}'}, which "
                    "is only read: replace() makes one that can be written",
                    name,
                )
            if self._shares_chunks(layout.owner[number]):
                raise ReadOnlyMemberError(
                    f"member {box} is only read: several regions share chunks of it", name
                )

    def _shares_chunks(self, owner: int) -> bool:
        """Whether regions of a zarr array, of one member or more, are cut within its chunks: of two writers
        one could lose its values."""
        members, layout = self.manifest.members, self._reading.layout
        same = [n for n, other in enumerate(layout.owner) if members[other].path == members[owner].path]
        return len(same) > 1 and cut_within_chunks(layout, same, self._reading.source(owner).array)

    # ------------------------------------------------------------ regions

    def append(self, rows: Any, codec: Any = None, **how: Unpack[Storing]) -> None:
        """Appends rows as a new region, in a member of their own.

        rows     an array of shape (n, *shape[1:]), or what has shape, dtype and []; copied in blocks
        codec    None: zarr's default; a mapping with what zarr's create_array takes (compressors, filters,
                 serializer, ...); or "cdd": a .cdd file. Without zarr it is "cdd"
        chunks, shards   of the zarr array; by default the logical array's chunks, and none
        path, options    of the .cdd file: where it goes, by default the folder of members; and a mapping of
                 what cdd.open(path, "w") takes, {"profile": "dense"} say

        The region begins at the end. Where that is not on the grid, rows up to the grid go to the last member
        first, if that is a zarr array that this region ends; else AlignmentError. Rows must cast by
        "same_kind", else TypeError.
        """
        self._check_under_way()
        source = adding.rows_of(rows, self.shape, self.dtype)
        missing, last = adding.completing(self, source)
        more = int(source.shape[0]) - missing
        with self._all_or_nothing():
            if more:
                if not missing:
                    self._check_end()
                member = adding.new_member(self, self._underway, source, missing, codec, **how)
            if last is not None:
                self._put(last, adding.lengthened(self, last, source, missing), missing)
            if more:
                self._add_rows(member, 0, more)

    def _check_end(self) -> None:
        end, unit = self.shape[0], self.manifest.grid[0]
        if end % unit:
            raise AlignmentError(
                f"the array ends at {end}, which is no multiple of grid {unit}, and its last member cannot "
                "be lengthened: replace() makes it one that can"
            )

    def append_virtual(
        self, path: str | os.PathLike[str], rows: int | None = None, offset: int | None = None
    ) -> None:
        """Appends the rows of a raw file or a .npy file to an array of a repository, without copying them.

        path     of a file on this machine, below a directory of the transaction's allow=
        rows     how many; by default all
        offset   where they begin in a raw file, in bytes; by default 0. A .npy file says that itself

        They are virtual references of icechunk, which raise when the file changed since. Readers need allow=.
        MemberError where the file is too short or of another shape or dtype.
        """
        self._check_under_way()
        self._check_end()
        with self._all_or_nothing():
            for member in virtual_members(self, self._underway, path, rows, offset):
                self._add_rows(member, 0, member.shape[0])

    def prepare(self, rows: Any, codec: Any = None, **how: Unpack[Storing]) -> Member:
        """The first half of an append in two commits: writes the member, which no manifest names yet."""
        self._check_under_way()
        source = adding.rows_of(rows, self.shape, self.dtype)
        with self._all_or_nothing():
            member = adding.new_member(self, self._underway, source, 0, codec, **how)
        self._underway.keep()
        return member

    def append_prepared(self, member: Member) -> None:
        """The second half: appends a member that was written in a commit before."""
        self._check_under_way()
        self._check_end()
        self._add_rows(member, 0, member.shape[0])

    def append_member(
        self,
        member: Any,
        rows: int | None = None,
        *,
        start: int = 0,
        column: str | None = None,
        name: str | None = None,
        digest: bool | None = None,
    ) -> None:
        """Appends an array that is there already as a region: it is not copied and not changed.

        member   the path of a .cdd file, a zarr array or a cdd dataset (with `column`); a zarr.Array, of this
                 group or of another store; a cdd.Reader of a file; or, with `name`, any array that readers
                 will give as members={name: array}
        rows     how many of its rows from `start` on; by default all that there are now
        digest   hash the rows, so that verify() and repin() can tell whether they are still the same: all are
                 read once. By default for .cdd files and datasets

        A path below the folder of the repository, store or JSON file is kept relative to it, another one as
        it is: only with allow=. Raises AlignmentError where the array's end is not on the grid.
        """
        self._check_under_way()
        made, opened, places = adding.existing_member(self, member, column, name)
        available = int(opened.shape[0]) - arguments.size("start", start, 0, int(opened.shape[0]))
        count = available if rows is None else arguments.size("rows", rows, 0, available)
        if count == 0:
            return
        self._check_end()
        made = adding.pinned(made, opened, start + count, digest)
        self._add_rows(made, start, count, places)

    def _add_rows(self, member: Member, at: int, count: int, places: Any = None) -> None:
        end = self.shape[0]
        region = Region(
            (end, *(0,) * (self.ndim - 1)),
            (end + count, *self.shape[1:]),
            member.name,
            (at, *(0,) * (self.ndim - 1)),
        )
        members = (*self.manifest.members, member)
        shape = (end + count, *self.shape[1:])
        self._change(self.manifest.with_regions([*self.regions, region], members, shape=shape), places)

    def add(
        self,
        lo: tuple[int, ...],
        values: Any,
        codec: Any = None,
        **how: Unpack[Storing],
    ) -> None:
        """Adds a region for a box that no region holds: for arrays with a fill value. Options as append()."""
        self._check_under_way()
        source = adding.rows_of(values, None, self.dtype, self.ndim)
        begin = tuple(arguments.index("lo", number) for number in lo)
        hi = tuple(a + size for a, size in zip(begin, source.shape, strict=True))
        name = adding.new_name()
        region = Region(begin, hi, name, (0,) * self.ndim)
        dummy = Member(name, "named", tuple(source.shape))
        Layout(self.manifest.with_regions([*self.regions, region], (*self.manifest.members, dummy)))  # checks
        with self._all_or_nothing():
            member = adding.new_member(self, self._underway, source, 0, codec, **how)
            regions = [*self.regions, region._replace(member=member.name)]
            self._change(self.manifest.with_regions(regions, (*self.manifest.members, member)))

    def replace(self, region: Any, codec: Any = None, **how: Unpack[Storing]) -> None:
        """Moves a region to a new member: another codec, or codec="cdd" for a .cdd file. Options as append().

        region is one of `regions`, or its number there. The rows are copied in blocks and stay what they are.
        A member that no region uses any more is deleted, if it is a zarr array of the group: older versions
        of an icechunk repository still have it; from a plain store it goes with prune().
        """
        number, found = self._find(region)
        box = [range(lo, hi) for lo, hi in zip(found.lo, found.hi, strict=True)]
        view = adding.Box(self._reading, box)
        regions = self.regions
        with self._all_or_nothing():
            member = adding.new_member(self, self._underway, view, 0, codec, **how)
            regions[number] = Region(found.lo, found.hi, member.name, (0,) * self.ndim)
            self._use(regions, (*self.manifest.members, member))

    def remove(self, region: Any) -> None:
        """Removes a region. Where the array has a fill value its elements are then that; else it must be the
        last one, of whole rows, and the array gets shorter. Its member is deleted as by replace()."""
        number, found = self._find(region)
        regions = self.regions
        del regions[number]
        if self.manifest.fill_value is not None:
            return self._use(regions, self.manifest.members)
        is_whole = not any(found.lo[1:]) and found.hi[1:] == self.shape[1:]
        if found.hi[0] != self.shape[0] or not is_whole:
            raise CoverageError(
                f"regions[{number}] is not the last, of whole rows: without it there would be a gap, and the "
                "array has no fill value"
            )
        return self._use(regions, self.manifest.members, shape=(found.lo[0], *self.shape[1:]))

    def grow(self, member: str | None = None, rows: int | None = None) -> int:
        """Takes in rows that were appended to the last member since; returns how many.

        member   its name; by default the one that holds the array's end
        rows     up to how many of the member's own; by default all

        Older versions keep what they show. ReadOnlyMemberError for kinds that do not grow by themselves.
        """
        self._check_under_way()
        end = self.shape[0]
        last = [region for region in self.regions if region.hi[0] == end and end]
        if len(last) != 1 or (member is not None and last[0].member != member):
            raise LogicalError(
                f"{'no member' if member is None else f'not {member!r}'} holds the array's end, alone"
            )
        old = self._member(last[0].member)
        new = adding.grown_member(self, old, rows)
        is_end = last[0].at[0] + end - last[0].lo[0] == old.shape[0]  # not rows of it that are left out
        more = new.shape[0] - old.shape[0] if is_end else 0
        if more:
            self._put(old, new, more)
        return more

    def repin(self, member: str, against: Any = None) -> None:
        """Takes the file that came in a member's place, as compact() makes one, if it holds the same rows.

        They are compared with the digests of the manifest, or with `against`: an array with the same rows, a
        cdd.Reader of a copy say. MemberError where a row differs, or is not there, or nothing tells.
        """
        self._check_under_way()
        old = self._member(member)
        self._put(old, adding.repinned(self, old, against), 0)

    # ------------------------------------------------------------ inside

    def _check_under_way(self) -> None:
        """ValueError once the transaction's block is left, or the array removed."""
        _ = self._underway.backend
        self._open_reading()

    @contextmanager
    def _all_or_nothing(self) -> Iterator[None]:
        """Where the block raises, the array is what it was before, and what was made for it is deleted."""
        before, was_changed = self._reading, self.changed
        try:
            with self._underway.all_or_nothing():
                yield
        except BaseException:
            self._show(before)
            self.changed = was_changed
            raise

    def _member(self, name: str) -> Member:
        for member in self.manifest.members:
            if member.name == name:
                return member
        raise MemberError(f"there is no member {name!r}", name)

    def _put(self, old: Member, new: Member, more: int) -> None:
        """Goes on with a member in the place of another, and so many more rows of it at the end."""
        end = self.shape[0]
        members = tuple(new if other is old else other for other in self.manifest.members)
        regions = [
            region._replace(hi=(end + more, *region.hi[1:])) if region.hi[0] == end else region
            for region in self.regions
        ]
        shape = (end + more, *self.shape[1:])
        self._change(self.manifest.with_regions(regions, members, shape=shape))

    def _find(self, region: Any) -> tuple[int, Region]:
        self._check_under_way()
        regions = self.regions
        if isinstance(region, Region):
            if region not in regions:
                raise LogicalError(f"the array has no region {region}")
            return regions.index(region), region
        number = arguments.index("region", region)
        if not -len(regions) <= number < len(regions):
            raise IndexError(f"region {number} is not one of {len(regions)}")
        return number % len(regions), regions[number]

    def _use(self, regions: list[Region], members: tuple[Member, ...], **changes: Any) -> None:
        """Goes on with these regions; members that none uses are let go."""
        used = {region.member for region in regions}
        gone = [member for member in members if member.name not in used]
        kept = tuple(member for member in members if member.name in used)
        self._change(self.manifest.with_regions(regions, kept, **changes))
        if self._underway.backend.keeps_versions:
            needed = {member.path for member in kept}  # two members may be the same array
            for path in {member.path for member in gone if member.kind == "zarr"} - needed:
                with suppress(KeyError):  # somebody deleted it
                    del self._reading.places.group[path]
