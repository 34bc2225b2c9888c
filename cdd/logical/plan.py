"""Reading a box of a logical array: which members, which part of each, straight into the result.

A Reading is a manifest with its members, opened as they are needed. It does not change, so that readers in
several threads see one state.
"""

import math
import os
import threading
from bisect import bisect_right
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from typing import Any

import numpy as np

from cdd.dtypes import Array
from cdd.indexing import Numbers, Selection
from cdd.logical.keys import applied, points_of
from cdd.logical.manifest import Manifest
from cdd.logical.members import Places, Source, ZarrSource
from cdd.logical.regions import Layout, cut, moved

THREADS = 8  # that wait for members at once
POINTS_BYTES = 64 << 20  # of one box that is read for scattered points

_pool: tuple[int, ThreadPoolExecutor] | None = None
_pool_lock = threading.Lock()


def _threads() -> ThreadPoolExecutor:
    """The threads in which members are waited for, of this process."""
    global _pool
    with _pool_lock:
        if _pool is None or _pool[0] != os.getpid():
            _pool = os.getpid(), ThreadPoolExecutor(THREADS, "cdd-logical")
        return _pool[1]


Piece = tuple[int, list[Numbers], tuple[slice, ...]]  # region, its member's part, the result's


class Reading:
    """One state of a logical array that can be read."""

    def __init__(self, manifest: Manifest, places: Places, opened: "Reading | None" = None) -> None:
        """Members that `opened` has open already are taken from there."""
        self.manifest = manifest
        self.places = places
        self.layout = Layout(manifest)
        self._lock = threading.Lock()
        self.closed = False
        old = {} if opened is None else opened.by_member()
        self._sources: list[Source | None] = [old.get(member) for member in manifest.members]
        self.fast = RowsOnly(self)

    def at(self, places: Places) -> "Reading":
        """The same with other places to open members at."""
        return Reading(self.manifest, places, self)

    def by_member(self) -> dict[Any, Source]:
        pairs = zip(self.manifest.members, self._sources, strict=True)
        return {member: source for member, source in pairs if source is not None}

    def source(self, number: int) -> Source:
        """The member of that number, open."""
        found = self._sources[number]
        if found is not None:
            return found
        with self._lock:
            if self.closed:
                raise ValueError("the logical array is closed")
            found = self._sources[number]
            if found is None:
                found = self.places.open(self.manifest.members[number], self.manifest.dtype)
                self._sources[number] = found
        return found

    def close(self, but: "Reading | None" = None) -> None:
        """Closes the members, but those that another reading goes on with."""
        kept = set() if but is None else {id(source) for source in but._sources}
        with self._lock:
            self.closed = True
            for source in self._sources:
                if source is not None and id(source) not in kept:
                    source.close()
            self._sources = [None] * len(self._sources)

    # ------------------------------------------------------------ a box

    def pieces(self, picks: Sequence[Numbers]) -> list[Piece]:
        """What each region has of a box in which no pick is empty."""
        layout = self.layout
        found = []
        if layout.axis is not None:
            axis = layout.axis
            pick = picks[axis]
            for number in layout.find(picks):
                first, last = cut(pick, layout.starts[number], layout.stops[number])
                if first >= last:
                    continue
                at = layout.at[number]
                local = [moved(other, by) for other, by in zip(picks, at, strict=True)]
                local[axis] = moved(pick[first:last], at[axis] - layout.starts[number])
                place = (slice(None),) * axis + (slice(first, last),)
                found.append((number, local, place))
            return found
        for number in layout.find(picks):
            cuts = [
                cut(pick, lo, hi)
                for pick, lo, hi in zip(picks, layout.lo[number], layout.hi[number], strict=True)
            ]
            if all(first < last for first, last in cuts):
                shifts = zip(picks, cuts, layout.lo[number], layout.at[number], strict=True)
                local = [moved(pick[first:last], at - lo) for pick, (first, last), lo, at in shifts]
                found.append((number, local, tuple([slice(first, last) for first, last in cuts])))
        return found

    def read(self, picks: Sequence[Numbers], out: Array | None = None) -> Array:
        """The box of these picks, of one dimension a pick; into `out` of its shape and dtype."""
        counts = tuple([len(pick) for pick in picks])
        if out is None:
            out = np.empty(counts, self.manifest.dtype)
        if 0 in counts:
            return out
        pieces = self.pieces(picks)
        if len(pieces) == 1 and math.prod(map(len, pieces[0][1])) == out.size:
            self._read_piece(pieces[0], out, whole=True)
            return out
        if self.manifest.fill_value is not None:
            covered = sum(math.prod(map(len, local)) for _, local, _ in pieces)
            if covered < out.size:
                out[...] = self.manifest.fill_value
        self._run([(piece, out) for piece in pieces])
        return out

    def _run(self, work: Sequence[tuple[Piece, Array]]) -> None:
        """Reads pieces: those of members that wait in threads, where there are two or more."""
        owner = self.layout.owner
        waiting = [item for item in work if self.source(owner[item[0][0]]).waits] if len(work) > 1 else []
        if len(waiting) < 2:
            for piece, out in work:
                self._read_piece(piece, out)
            return
        futures = [_threads().submit(self._read_piece, piece, out) for piece, out in waiting]
        try:
            for piece, out in work:
                if not self.source(owner[piece[0]]).waits:
                    self._read_piece(piece, out)
        except BaseException:
            for future in futures:
                future.cancel()
            raise
        finally:
            wait(futures)  # none goes on writing into `out` after this call
        for future in futures:
            future.result()

    def _read_piece(self, piece: Piece, out: Array, whole: bool = False) -> None:
        number, local, place = piece
        layout = self.layout
        member = layout.owner[number]
        try:
            self.source(member).into(local, out if whole else out[place])
        except Exception as error:
            self.note(error, number)
            raise

    def note(self, error: Exception, number: int) -> None:
        """Says in an error of a member which one it was, and for which region."""
        name = self.manifest.members[self.layout.owner[number]].name
        error.add_note(f"in member {name!r}, region {self.layout.text(number)}")

    # ------------------------------------------------------------ a key

    def take(self, selection: Selection) -> Any:
        """The result of a key."""
        itemsize = self.manifest.dtype.itemsize
        points = points_of(selection, itemsize, POINTS_BYTES)
        if points is None:
            return applied(self.read(selection.picks), selection)
        flat = np.empty(points.flat, self.manifest.dtype)
        for place, part in points.pieces:
            flat[place] = applied(self.read(part.picks), part)
        return flat.reshape(points.shape)


class RowsOnly:
    """Whole rows of slabs along the first dimension, by the shortest way.

    starts, stops, shifts of regions in order, with what reads rows of each once it is open: a cdd.Reader, to
    be indexed, and a function (start, stop, out). Empty where regions are cut in another way.
    """

    __slots__ = ("_reading", "calls", "readers", "shifts", "starts", "stops")

    def __init__(self, reading: Reading) -> None:
        layout, members = reading.layout, reading.manifest.members
        self._reading = reading
        self.starts: list[int] = []
        self.stops: list[int] = []
        self.shifts: list[int] = []
        tail = reading.manifest.shape[1:]
        if layout.axis == 0 and all(
            members[owner].shape[1:] == tail and not any(at[1:])
            for owner, at in zip(layout.owner, layout.at, strict=True)
        ):
            self.starts, self.stops = layout.starts, layout.stops
            self.shifts = [at[0] - start for at, start in zip(layout.at, layout.starts, strict=True)]
        self.readers: list[Any] = [None] * len(self.starts)
        self.calls: list[Callable[[int, int, Array], Any] | None] = [None] * len(self.starts)

    def chunk_end(self, stop: int) -> int:
        """Where the chunk of a zarr member ends that holds the row before `stop`; else `stop`."""
        number = bisect_right(self.starts, stop - 1) - 1
        if number < 0 or stop > self.stops[number]:
            return stop
        source = self._reading.source(self._reading.layout.owner[number])
        if not isinstance(source, ZarrSource):
            return stop
        rows = (source.array.shards or source.array.chunks)[0]
        end = -(-(stop + self.shifts[number]) // rows) * rows - self.shifts[number]
        return int(min(end, self.stops[number]))

    def reader(self, number: int) -> Any:
        """The cdd.Reader of a region, opened once; None where its member is another array."""
        if self.calls[number] is None:
            self.open(number)
        return self.readers[number]

    def open(self, number: int) -> Callable[[int, int, Array], Any]:
        """Opens the member of a region, for `readers` and `calls`."""
        source = self._reading.source(self._reading.layout.owner[number])
        self.calls[number] = source.rows
        self.readers[number] = source.reader
        return source.rows


def joined_runs(
    runs: Iterable[tuple[int, int]], most: int, chunk_end: Callable[[int], int] = int
) -> list[tuple[int, int]]:
    """Runs [start, stop) in order; those that touch, overlap or share a chunk are one, of at most `most`.

    chunk_end(stop) is where the chunk ends that holds the row before `stop`.
    """
    found: list[tuple[int, int]] = []
    for start, stop in sorted(runs):
        joins = found and (start <= found[-1][1] or start < chunk_end(found[-1][1]))
        if joins and max(stop, found[-1][1]) - found[-1][0] <= most:
            found[-1] = found[-1][0], max(stop, found[-1][1])
        else:
            found.append((start, stop))
    return found
