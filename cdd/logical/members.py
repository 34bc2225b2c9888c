"""Members that are open: each puts any box of itself into memory of ours.

    source.into(picks, out)       a pick is a range with a positive step, or a sorted array
    source.rows(start, stop, out) whole rows
    source.reader                 a cdd.Reader whose rows are the member's: it is asked directly
    source.waits                  whether reading is worth a thread of its own

A member is opened when it is first read, and is then compared with what the manifest says of it.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise, product
from typing import Any

import numpy as np

import cdd
from cdd.dtypes import Array, DType
from cdd.indexing import Numbers
from cdd.logical.errors import MemberError
from cdd.logical.extras import check_fork, zarr
from cdd.logical.manifest import Member
from cdd.logical.trust import Trust


class Source:
    """A member that is open. The base reads whatever has shape, dtype and [] with slices."""

    reader: Any = None
    waits = False
    rows: Callable[[int, int, Array], Any]

    def __init__(self, array: Any, shape: tuple[int, ...]) -> None:
        self.array = array
        self._whole = [range(size) for size in shape[1:]]
        self.rows = self._rows

    def _rows(self, start: int, stop: int, out: Array) -> Any:
        self.into([range(start, stop), *self._whole], out)
        return out

    def into(self, picks: Sequence[Numbers], out: Array) -> None:
        into = getattr(self.array, "read_into", None)
        for place, key in _runs(picks):
            if into is not None:
                into(key, out[place])
            else:
                out[place] = self.array[key]

    def close(self) -> None:
        """Lets go of what was opened here."""


def _runs(picks: Sequence[Numbers]) -> Iterator[tuple[tuple[slice, ...], tuple[slice, ...]]]:
    """(place in the result, key) for boxes of slices that make up `picks`."""
    parts: list[list[tuple[slice, slice]]] = []
    for pick in picks:
        if isinstance(pick, range):
            parts.append([(slice(None), slice(pick.start, pick.stop, pick.step))])
            continue
        edges = [0, *(np.flatnonzero(np.diff(pick) != 1) + 1).tolist(), len(pick)]
        parts.append([(slice(a, b), slice(int(pick[a]), int(pick[b - 1]) + 1)) for a, b in pairwise(edges)])
    for combination in product(*parts):
        yield tuple(place for place, _ in combination), tuple(key for _, key in combination)


def _slices(picks: Sequence[Numbers]) -> tuple[slice, ...] | None:
    """A key of slices, where no pick is an array."""
    if all(type(pick) is range for pick in picks):
        return tuple([slice(pick.start, pick.stop, pick.step) for pick in picks])  # type: ignore[union-attr]
    return None


class NumpySource(Source):
    """An array in memory."""

    def into(self, picks: Sequence[Numbers], out: Array) -> None:
        key = _slices(picks)
        if key is not None:
            np.copyto(out, self.array[key])
            return
        arrays = [pick if isinstance(pick, np.ndarray) else np.arange(*_bounds(pick)) for pick in picks]
        np.copyto(out, self.array[np.ix_(*arrays)])


def _bounds(pick: Numbers) -> tuple[int, int, int]:
    assert isinstance(pick, range)
    return pick.start, pick.stop, pick.step


class StoreSource(Source):
    """A .cdd file, or a column of a dataset, which reads in the same way. `ours` is what close() closes."""

    def __init__(self, reader: Any, shape: tuple[int, ...], ours: Any = None) -> None:
        super().__init__(reader, shape)
        self.reader = reader
        self._ours = ours
        self.rows = reader.read

    def into(self, picks: Sequence[Numbers], out: Array) -> None:
        rows, rest = picks[0], picks[1:]
        whole = all(
            len(pick) == len(size) and type(pick) is range
            for pick, size in zip(rest, self._whole, strict=True)
        )
        if whole and out.flags.c_contiguous and out.flags.writeable:
            if isinstance(rows, np.ndarray) or rows.step != 1:
                numbers = rows if isinstance(rows, np.ndarray) else np.arange(*_bounds(rows))
                self.reader.read_windows(numbers, 1, out.reshape(len(rows), 1, *out.shape[1:]))
            else:
                self.reader.read(rows.start, rows.stop, out)
            return
        key = _slices(picks)
        if key is not None:
            np.copyto(out, self.reader[key])
            return
        runs = tuple(
            slice(int(pick[0]), int(pick[-1]) + 1) if isinstance(pick, np.ndarray) else slice(*_bounds(pick))
            for pick in rest
        )
        block = self.reader[(rows if isinstance(rows, np.ndarray) else slice(*_bounds(rows)), *runs)]
        within = [
            pick - pick[0] if isinstance(pick, np.ndarray) else np.arange(len(pick))
            for pick in (range(len(rows)), *rest)
        ]
        np.copyto(out, block[np.ix_(*within)])

    def close(self) -> None:
        if self._ours is not None:
            self._ours.close()


class ZarrSource(Source):
    """A zarr array, maybe with icechunk behind it."""

    def __init__(self, array: Any, shape: tuple[int, ...], icechunk: bool) -> None:
        super().__init__(array, shape)
        # Near stores keep zarr's Python busy, which threads would only take from each other.
        near = (zarr().storage.LocalStore, zarr().storage.MemoryStore)
        self.waits = not isinstance(array.store, near)
        self._icechunk = icechunk
        self._buffer = zarr().buffer.cpu.NDBuffer

    def into(self, picks: Sequence[Numbers], out: Array) -> None:
        if self._icechunk:
            check_fork()
        key = _slices(picks)
        buffer = self._buffer(out)
        if key is not None:
            self.array.get_basic_selection(key, out=buffer)
            return
        self.array.get_orthogonal_selection(
            tuple(pick if isinstance(pick, np.ndarray) else slice(*_bounds(pick)) for pick in picks),
            out=buffer,
        )

    def write(self, picks: Sequence[Numbers], value: Array) -> None:
        """Writes a box; picks are ranges."""
        if self._icechunk:
            check_fork()
        self.array.set_basic_selection(_slices(picks), value)


@dataclass(frozen=True, slots=True)
class Places:
    """Where the members of one array are looked for."""

    group: Any = None  # the zarr group
    trust: Trust = field(default_factory=Trust)
    named: Mapping[str, Any] = field(default_factory=dict)
    icechunk: bool = False  # whether it is behind the group

    def open(self, member: Member, dtype: DType) -> Source:
        """The member, open and as the manifest says. MemberError where it is not; the system's errors."""
        source = getattr(self, f"_open_{member.kind.replace('-', '_')}")(member)
        _compare(member, source, dtype)
        return source  # type: ignore[no-any-return]

    def _open_named(self, member: Member) -> Source:
        if member.name not in self.named:
            raise MemberError(
                f"member {member.name!r} comes from the program: members={{{member.name!r}: array}} names it",
                member.name,
            )
        array = self.named[member.name]
        for wanted in ("shape", "dtype", "__getitem__"):
            if not hasattr(array, wanted):
                raise MemberError(
                    f"member {member.name!r}, a {type(array).__name__}, has no {wanted}", member.name
                )
        return source_of(array, member.shape)

    def _open_cdd(self, member: Member) -> Source:
        path = self.trust.find(member.path, member.name)
        reader = cdd.open(path)
        if member.id is not None and reader.id != member.id:
            found = reader.id
            reader.close()
            raise MemberError(
                f"member {member.name!r}: {path!r} has the id {found}, {member.id} is expected: another file "
                "came in its place (a transaction's repin() takes one that holds the same rows)",
                member.name,
            )
        return StoreSource(reader, member.shape, reader)

    def _open_dataset(self, member: Member) -> Source:
        from cdd import dataset

        place = self.trust.find(member.path, member.name)
        opened = dataset.open(place, allow=self.trust.directories)
        if member.id is not None and opened.id != member.id:
            raise MemberError(
                f"member {member.name!r}: the dataset has the id {opened.id}, {member.id} is expected",
                member.name,
            )
        try:
            column = opened[member.column or ""]
        except KeyError:
            raise MemberError(
                f"member {member.name!r}: the dataset {member.path!r} has no column {member.column!r}",
                member.name,
            ) from None
        return StoreSource(column, member.shape, opened)

    def _open_zarr(self, member: Member) -> Source:
        if self.group is None:
            raise MemberError(
                f"member {member.name!r} is a zarr array of the manifest's group, and this manifest has none",
                member.name,
            )
        if self.icechunk:
            check_fork()
        library = zarr()
        try:
            array = self.group[member.path]
        except KeyError:
            raise MemberError(
                f"member {member.name!r}: the group has no array {member.path!r}", member.name
            ) from None
        if not isinstance(array, library.Array):
            raise MemberError(f"member {member.name!r}: {member.path!r} is a group, no array", member.name)
        return ZarrSource(array, member.shape, self.icechunk)

    def _open_zarr_external(self, member: Member) -> Source:
        library = zarr()
        path = self.trust.find(member.path, member.name)
        try:
            array = library.open_array(path, mode="r")
        except (FileNotFoundError, KeyError, library.errors.BaseZarrError) as error:
            raise MemberError(
                f"member {member.name!r}: no zarr array {path!r}: {error}", member.name
            ) from error
        return ZarrSource(array, member.shape, False)


def source_of(array: Any, shape: tuple[int, ...]) -> Source:
    """What reads an array that the program gave."""
    if isinstance(array, np.ndarray):
        return NumpySource(array, shape)
    if isinstance(array, cdd.Reader):
        return StoreSource(array, shape)
    if type(array).__module__.partition(".")[0] == "zarr" and hasattr(array, "get_orthogonal_selection"):
        return ZarrSource(array, shape, hasattr(array.store, "session"))
    return Source(array, shape)


def _compare(member: Member, source: Source, dtype: DType) -> None:
    array, found = source.array, np.dtype(source.array.dtype)
    # The byte order of a zarr array is its codec's: it has this machine's, and assigns by value.
    is_same = found == dtype or (isinstance(source, ZarrSource) and found == dtype.newbyteorder("="))
    if not is_same:
        raise MemberError(
            f"member {member.name!r} has dtype {array.dtype}, the manifest says {dtype}", member.name
        )
    shape = tuple(array.shape)
    if shape == member.shape:
        return
    # A member may have more rows: it grew since, or a writer was killed while it lengthened a zarr array.
    if len(shape) != len(member.shape) or shape[1:] != member.shape[1:] or shape[0] < member.shape[0]:
        raise MemberError(
            f"member {member.name!r} has shape {shape}, the manifest says {member.shape}: only more "
            "rows are allowed",
            member.name,
        )
