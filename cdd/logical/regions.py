"""Which regions of a logical array a box touches, and which part of each. NumPy only, nothing is opened.

A box is one pick a dimension: a range with a positive step, or a sorted array of distinct numbers. What a
pick and a region have in common is a run of the pick: each region's part of a result is a block of it.

    cut(pick, lo, hi) -> (first, last)      the numbers pick[first:last] lie within [lo, hi)
    Layout(manifest).find(picks)            the regions that may be touched, by the layout's numbers
"""

import math
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from typing import Any

import numpy as np

from cdd.dtypes import Array
from cdd.indexing import Numbers
from cdd.logical.errors import CoverageError, ManifestError, OverlapError
from cdd.logical.manifest import Manifest

MAX_CELLS = 1 << 22


def cut(pick: Numbers, lo: int, hi: int) -> tuple[int, int]:
    """The run of a pick that lies within [lo, hi); empty where first >= last."""
    if isinstance(pick, range):
        start, step = pick.start, pick.step
        first = 0 if start >= lo else -((start - lo) // step)
        return first, min(len(pick), -((start - hi) // step))
    return int(pick.searchsorted(lo)), int(pick.searchsorted(hi))


def moved(pick: Numbers, by: int) -> Numbers:
    """The pick's numbers plus `by`."""
    if by == 0:
        return pick
    if isinstance(pick, range):
        return range(pick.start + by, pick.stop + by, pick.step)
    return pick + by


class Layout:
    """Where regions lie. Making one checks that none overlap and that all elements have one, or a fill value.

    Slabs, regions that are cut along one dimension only, are found by bisection. Others by a map of cells:
    the sorted cuts of each dimension, and the number of the region that holds each cell, -1 for none.
    """

    def __init__(self, manifest: Manifest) -> None:
        self.axis: int | None = None  # along which slabs are cut
        bounds = manifest.lo, manifest.hi, manifest.at, manifest.owner
        shape = np.array(manifest.shape, np.int64)
        whole = ((manifest.lo == 0) & (manifest.hi == shape)).all(axis=0)
        if whole.sum() >= manifest.ndim - 1 and len(manifest.lo):
            self.axis = 0 if whole.all() else int(np.argmin(whole))
            bounds = self._order_slabs(manifest, self.axis)
        else:
            self._map_cells(manifest)
        self.lo: list[list[int]] = bounds[0].tolist()
        self.hi: list[list[int]] = bounds[1].tolist()
        self.at: list[list[int]] = bounds[2].tolist()
        self.owner: list[int] = bounds[3].tolist()
        if self.axis is not None:
            self.starts: list[int] = bounds[0][:, self.axis].tolist()
            self.stops: list[int] = bounds[1][:, self.axis].tolist()

    def _order_slabs(self, manifest: Manifest, axis: int) -> tuple[Array, Array, Array, Array]:
        """Regions in order; those that go on where the one before ends, in the same member, joined to it."""
        order = np.argsort(manifest.lo[:, axis], kind="stable")
        starts, stops = manifest.lo[order, axis], manifest.hi[order, axis]
        over = np.flatnonzero(stops[:-1] > starts[1:])
        if len(over):
            a, b = sorted((int(order[over[0]]), int(order[over[0] + 1])))
            where = f"[{starts[over[0] + 1]}, {min(stops[over[0]], stops[over[0] + 1])})"
            raise OverlapError(f"regions[{a}] and regions[{b}] both hold {where} of dimension {axis}")
        size = manifest.shape[axis]
        if manifest.fill_value is None and manifest.size:
            edges_before, edges_after = np.append(0, stops), np.append(starts, size)
            gaps = np.flatnonzero(edges_before != edges_after)
            if len(gaps):
                where = f"[{edges_before[gaps[0]]}, {edges_after[gaps[0]]})"
                raise CoverageError(
                    f"no region holds {where} of dimension {axis}, and the manifest has no fill_value"
                )
        at, owner = manifest.at[order], manifest.owner[order]
        goes_on = at.copy()
        goes_on[:, axis] += stops - starts
        joined = (owner[1:] == owner[:-1]) & (stops[:-1] == starts[1:]) & (at[1:] == goes_on[:-1]).all(axis=1)
        first = np.append(True, ~joined)
        last = np.append(~joined, True)
        return manifest.lo[order][first], manifest.hi[order][last], at[first], owner[first]

    def _map_cells(self, manifest: Manifest) -> None:
        cuts = [
            np.unique(np.concatenate((manifest.lo[:, dim], manifest.hi[:, dim], [0, size])))
            for dim, size in enumerate(manifest.shape)
        ]
        sizes = [max(1, len(of_dim) - 1) for of_dim in cuts]  # of no elements: a cell, that nobody reads
        if math.prod(sizes) > MAX_CELLS:
            raise ManifestError(
                f"regions are cut into {math.prod(sizes):,} cells, {MAX_CELLS:,} are allowed: "
                f"{' x '.join(map(str, sizes))} between the cuts of each dimension"
            )
        cells = np.full(sizes, -1, np.int32)
        first = np.stack([of_dim.searchsorted(manifest.lo[:, dim]) for dim, of_dim in enumerate(cuts)], 1)
        last = np.stack([of_dim.searchsorted(manifest.hi[:, dim]) for dim, of_dim in enumerate(cuts)], 1)
        for number, (a, b) in enumerate(zip(first.tolist(), last.tolist(), strict=True)):
            part = cells[tuple(map(slice, a, b))]
            if part.max(initial=-1) >= 0:  # so no cell is written twice, whatever a manifest says
                raise OverlapError(f"regions[{part.max()}] and regions[{number}] overlap")
            part[...] = number
        if manifest.fill_value is None and manifest.size and (cells < 0).any():
            free = np.argwhere(cells < 0)[0]
            place = tuple(int(of_dim[i]) for of_dim, i in zip(cuts, free, strict=True))
            raise CoverageError(f"no region holds the element {place}, and the manifest has no fill_value")
        self._cuts: list[list[int]] = [of_dim.tolist() for of_dim in cuts]
        self._cells = cells

    def text(self, number: int) -> str:
        """A region for people: [0:512, 0:50, 0:3]."""
        bounds = zip(self.lo[number], self.hi[number], strict=True)
        return f"[{', '.join(f'{lo}:{hi}' for lo, hi in bounds)}]"

    def find(self, picks: Sequence[Numbers]) -> Sequence[int]:
        """The numbers of the regions that hold something between the picks' first and last numbers."""
        if self.axis is not None:
            pick = picks[self.axis]
            begin = bisect_right(self.stops, int(pick[0]))
            return range(begin, bisect_right(self.starts, int(pick[-1])))
        part = self._cells[
            tuple(
                slice(bisect_right(of_dim, int(pick[0])) - 1, bisect_left(of_dim, int(pick[-1]) + 1))
                for of_dim, pick in zip(self._cuts, picks, strict=True)
            )
        ]
        if part.size == 1:
            number = int(part.flat[0])
            return (number,) if number >= 0 else ()
        return [number for number in np.unique(part).tolist() if number >= 0]


def cut_within_chunks(layout: Layout, numbers: list[int], array: Any) -> bool:
    """Whether one of these regions of a zarr array begins or ends within a chunk of it."""
    chunks = array.shards or array.chunks
    for number in numbers:
        sizes = zip(layout.lo[number], layout.hi[number], layout.at[number], strict=True)
        for dim, (lo, hi, at) in enumerate(sizes):
            end = at + hi - lo
            if at % chunks[dim] or (end % chunks[dim] and end != array.shape[dim]):
                return True
    return False
