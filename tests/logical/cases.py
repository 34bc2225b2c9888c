"""Random logical arrays with members of every kind, the array that NumPy has of the same, and random keys."""

from dataclasses import dataclass, field
from itertools import pairwise, product
from typing import Any

import numpy as np
from hypothesis import strategies as st

import cdd
from cdd.logical import Array, Manifest, Member, Region
from cdd.logical.members import Places

try:
    import zarr
except ImportError:
    zarr = None

DTYPES = ("<f4", "<i2", "|b1", "<c8", "<M8[ns]", "<f8", ">i4", "bfloat16")
KINDS = ("numpy", "cdd", "duck", "plain duck") + (("zarr",) if zarr else ())


class Duck:
    """An array that counts what is read of it, and takes slices alone."""

    def __init__(self, array: np.ndarray) -> None:
        self._array = array
        self.shape, self.dtype = array.shape, array.dtype
        self.reads = np.zeros(array.shape, int)
        self.calls = 0

    def __getitem__(self, key: Any) -> np.ndarray:
        assert isinstance(key, tuple)
        assert len(key) == len(self.shape)
        assert all(isinstance(k, slice) and (k.step is None or k.step > 0) for k in key)
        self.calls += 1
        self.reads[key] += 1
        return self._array[key].copy()


class IntoDuck(Duck):
    """The same, which reads into memory of the caller's."""

    def read_into(self, key: Any, out: np.ndarray) -> None:
        assert out.shape == self[key].shape
        out[...] = self._array[key]


@dataclass
class Case:
    array: Array
    expected: np.ndarray
    ducks: list[Duck] = field(default_factory=list)


def boxes(
    draw: st.DrawFn, shape: tuple[int, ...], cuts: int
) -> list[tuple[tuple[int, ...], tuple[int, ...]]]:
    """A random partition of an array into boxes."""
    found = [((0,) * len(shape), shape)]
    for _ in range(cuts):
        number = draw(st.integers(0, len(found) - 1))
        lo, hi = found[number]
        dim = draw(st.integers(0, len(shape) - 1))
        if hi[dim] - lo[dim] < 2:
            continue
        at = draw(st.integers(lo[dim] + 1, hi[dim] - 1))
        left = tuple(at if i == dim else end for i, end in enumerate(hi))
        right = tuple(at if i == dim else begin for i, begin in enumerate(lo))
        found[number : number + 1] = [(lo, left), (right, hi)]
    return found


@st.composite
def cases(draw: st.DrawFn, kinds: tuple[str, ...] = KINDS, most_dims: int = 4) -> Case:
    ndim = draw(st.integers(1, most_dims))
    shape = tuple(draw(st.integers(1, 9 if dim == 0 else 5)) for dim in range(ndim))
    dtype = cdd.dtypes.named(draw(st.sampled_from(DTYPES)))
    rng = np.random.default_rng(draw(st.integers(0, 1 << 30)))
    expected = rng.integers(0, 2 if dtype.kind == "b" else 1000, shape).astype(dtype)
    if draw(st.booleans()):  # slabs
        edges = sorted({0, shape[0], *draw(st.lists(st.integers(0, shape[0]), max_size=4))})
        found = [((a, *(0,) * (ndim - 1)), (b, *shape[1:])) for a, b in pairwise(edges)]
    else:
        found = boxes(draw, shape, draw(st.integers(0, 6)))
    fill = None
    if draw(st.booleans()):
        fill = np.ones((), dtype)[()]
        kept = [box for box in found if draw(st.integers(0, 4))]
        for lo, hi in set(found) - set(kept):
            expected[tuple(map(slice, lo, hi))] = fill
        found = draw(st.permutations(kept))
    group = zarr.create_group(zarr.storage.MemoryStore()) if zarr else None
    named: dict[str, Any] = {}
    members, regions, ducks = [], [], []
    for number, (lo, hi) in enumerate(found):
        kind = draw(st.sampled_from(kinds))
        if (kind == "cdd" and not dtype.isnative) or (kind == "zarr" and dtype.name == "bfloat16"):
            kind = "numpy"  # the others do not have that
        name = f"m{number}"
        pads = [(draw(st.integers(0, 2)), draw(st.integers(0, 2))) for _ in shape]
        part = np.pad(expected[tuple(map(slice, lo, hi))], pads)
        at = tuple(before for before, _ in pads)
        if kind == "zarr":
            chunks = tuple(draw(st.integers(1, size)) for size in part.shape)
            made = group.create_array(name, shape=part.shape, dtype=part.dtype, chunks=chunks)
            made[...] = part
        elif kind == "cdd":
            memory = cdd.Memory()
            cdd.save(memory, part)
            named[name] = cdd.open(memory)
        elif kind == "numpy":
            named[name] = part if draw(st.booleans()) else np.asfortranarray(part)
        else:
            named[name] = (IntoDuck if kind == "duck" else Duck)(part)
            ducks.append(named[name])
        members.append(
            Member(name, "zarr" if kind == "zarr" else "named", part.shape, name * (kind == "zarr"))
        )
        regions.append(Region(lo, hi, name, at))
    base = Manifest(shape, dtype, (1,) * ndim, shape, fill_value=fill)
    manifest = base.with_regions(regions, tuple(members))
    return Case(Array(manifest, places=Places(group, named=named)), expected, ducks)


def slices(size: int) -> st.SearchStrategy[slice]:
    ends = st.none() | st.integers(-size - 2, size + 2)
    return st.builds(slice, ends, ends, st.none() | st.sampled_from([1, 1, 2, 3, -1, -2, size + 1]))


@st.composite
def keys(draw: st.DrawFn, shape: tuple[int, ...]) -> Any:
    """Keys of every sort, some of which NumPy refuses."""
    parts: list[Any] = []
    dim = 0
    wanted = draw(st.integers(0, len(shape) + (draw(st.integers(0, 9)) == 0)))
    while dim < wanted:
        size = shape[min(dim, len(shape) - 1)]
        sort = draw(st.sampled_from(["slice", "slice", "int", "list", "array", "mask", "masks", "bool"]))
        numbers = st.integers(-size - (draw(st.integers(0, 9)) == 0), size - 1)
        if sort == "slice":
            parts.append(draw(slices(size)))
        elif sort == "int":
            number = draw(numbers)
            parts.append(np.int16(number) if draw(st.booleans()) else number)
        elif sort == "list":
            parts.append(draw(st.lists(numbers, max_size=4)))
        elif sort == "array":
            form = draw(st.sampled_from([(), (1,), (3,), (2, 3), (2, 1)]))
            count = int(np.prod(form))
            drawn = draw(st.lists(numbers, min_size=count, max_size=count))
            parts.append(np.array(drawn, np.int64).reshape(form))
        elif sort == "mask":
            parts.append(np.array(draw(st.lists(st.booleans(), min_size=size, max_size=size)), bool))
        elif sort == "masks" and dim + 2 <= len(shape):
            form2 = shape[dim : dim + 2]
            count = form2[0] * form2[1]
            drawn = draw(st.lists(st.booleans(), min_size=count, max_size=count))
            parts.append(np.array(drawn, bool).reshape(form2))
            dim += 1
        elif sort == "bool" and draw(st.integers(0, 3)) == 0:
            parts.append(draw(st.booleans()))
            continue
        else:
            parts.append(slice(None))
        dim += 1
    for _ in range(draw(st.sampled_from([0, 0, 0, 1, 2]))):
        parts.insert(draw(st.integers(0, len(parts))), None)
    if draw(st.integers(0, 3)) == 0:
        parts.insert(draw(st.integers(0, len(parts))), Ellipsis)
    return parts[0] if len(parts) == 1 and draw(st.booleans()) else tuple(parts)


def same(found: Any, expected: Any) -> None:
    assert type(found) is type(expected)
    assert found.dtype == expected.dtype
    assert found.shape == expected.shape
    assert np.array_equal(found, expected)


def all_places(shape: tuple[int, ...]) -> list[tuple[int, ...]]:
    return list(product(*map(range, shape)))
