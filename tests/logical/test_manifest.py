"""Manifests: what is refused, with which place in the error; damaged bytes; golden files; limits."""

import copy
import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import cdd
from cdd import logical
from cdd.logical import Manifest, manifest
from cdd.logical.manifest import ATTRIBUTE, fill_text, read

GOLDEN = Path(__file__).parent.parent / "golden"
GOOD: dict[str, Any] = {
    "version": 1,
    "min_reader": 1,
    "shape": [1000, 4],
    "dtype": "<f4",
    "grid": [100, 2],
    "chunks": [200, 4],
    "dimension_names": ["time", None],
    "attributes": {"unit": "usd"},
    "members": [
        {"name": "a", "kind": "named", "shape": [700, 4]},
        {"name": "b", "kind": "cdd", "path": "b.cdd", "shape": [400, 4], "id": "0123456789abcdef" * 2,
         "digests": [[300, "0" * 32], [400, "1" * 32]]},
    ],
    "regions": [
        {"lo": [0, 0], "hi": [600, 4], "member": 0, "at": [100, 0]},
        {"lo": [600, 0], "hi": [1000, 4], "member": 1},
    ],
}  # fmt: skip


def changed(path: str, value: Any) -> dict[str, Any]:
    """GOOD with another value at a place, or (value is KeyError) without it."""
    made = copy.deepcopy(GOOD)
    *parents, last = [int(part) if part.isdigit() else part for part in path.split(".")]
    place: Any = made
    for part in parents:
        place = place[part]
    if value is KeyError:
        del place[last]
    else:
        place[last] = value
    return made


def test_a_good_one_comes_back() -> None:
    assert read(GOOD).to_json() == GOOD
    assert read(json.loads(json.dumps(GOOD))) .regions() == read(GOOD).regions()  # fmt: skip


@pytest.mark.parametrize("path", [
    "version", "min_reader", "shape", "dtype", "grid", "chunks", "members", "regions", "members.0.name",
    "members.0.kind", "members.0.shape", "members.1.path", "regions.0.lo", "regions.0.hi", "regions.0.member",
])  # fmt: skip
def test_fields_that_are_missing(path: str) -> None:
    with pytest.raises(logical.ManifestError, match=r"has no field|has a path"):
        read(changed(path, KeyError))


BAD = [
    ("version", 0, "version is 0"),
    ("version", "1", "an integer"),
    ("version", True, "an integer"),
    ("min_reader", 3, "above version"),
    ("shape", [], "1 to 8 are allowed"),
    ("shape", [1] * 9, "1 to 8 are allowed"),
    ("shape", [1000, -4], r"shape\[1\] is -4"),
    ("shape", [1000.0, 4], r"shape\[0\] is 1000\.0"),
    ("shape", [1 << 62, 4], r"fewer than 2\*\*62"),
    ("shape", {"0": 1}, "a list is wanted"),
    ("shape", [1000, 5], "no region holds"),
    ("shape", [900, 4], r"regions\[1\]\.hi\[0\] is 1000: the array ends at 900"),
    ("dtype", "f4", '"<f4" is how'),
    ("dtype", "object", "a dtype of cdd"),
    ("dtype", "<f4,<f4", "a dtype of cdd"),
    ("dtype", "<U5", "a dtype of cdd"),
    ("dtype", 4, "a text is wanted"),
    ("dtype", "x" * 40, "at most 32 bytes"),
    ("grid", [300, 2], r"chunks\[0\] is 200: not a multiple of grid 300"),
    ("grid", [0, 2], r"grid\[0\] is 0"),
    ("grid", [100], "has 1 items"),
    ("chunks", [250, 4], "not a multiple of grid 100"),
    ("fill_value", 5, "a text is wanted"),
    ("fill_value", "five", "a float32 is wanted"),
    ("fill_value", "0x12", "a float32 is wanted"),
    ("fill_value", "1e39", "a float32 is wanted"),
    ("fill_value", "nan", "a float32 is wanted"),
    ("dimension_names", ["time"], "2 are allowed"),
    ("dimension_names", ["time", 5], "a text is wanted"),
    ("attributes", [], "an object is wanted"),
    ("members", {}, "a list is wanted"),
    ("members.1.name", "a", "another member has that name"),
    ("members.1.name", "a/b", "without slashes"),
    ("members.1.name", "", "without slashes"),
    ("members.1.name", "a\nb", "printable"),
    ("members.1.kind", "hdf5", "are allowed"),
    ("members.1.kind", ["cdd"], "are allowed"),
    ("members.1.kind", "dataset", "has a column"),
    ("members.0.path", "x", "is named by the program"),
    ("members.1.path", "../b.cdd", 'without ".."'),
    ("members.1.path", "a\\..\\b.cdd", 'without ".."'),
    ("members.1.path", "x" * 4097, "at most 4,096 bytes"),
    ("members.1.path", "x\0y", "null bytes"),
    ("members.1.id", "0" * 31, "32 hexadecimal"),
    ("members.1.id", "G" * 32, "32 hexadecimal"),
    ("members.1.column", "c", "one of no other kind"),
    ("members.1.shape", [300, 4], r"digests\[1\]\[0\] is 400: an integer from 301 to 300|has 300 rows"),
    ("members.1.shape", [400], "has 1 items"),
    ("members.1.digests", [], "1 to 4,096 are allowed"),
    ("members.1.digests", [[0, "0" * 32]], "an integer from 1"),
    ("members.1.digests", [[5, "0" * 32], [5, "0" * 32]], "an integer from 6"),
    ("members.1.digests", [[5, "0" * 32, 1]], "2 are allowed"),
    ("members.1.extra", 1, "only name, kind, shape"),
    ("regions.1.lo", [650, 0], "not a multiple of grid 100"),
    ("members.1", {"name": "b", "kind": "named", "shape": [300, 4]}, "ends at 400 along dimension 0"),
    (
        "regions.0",
        {"lo": [0, 0], "hi": [700, 4], "member": 0},
        r"\[0\] and regions\[1\] both hold \[600, 700\)",
    ),
    ("regions.1.lo", [700, 0], r"no region holds \[600, 700\)"),
    ("regions.1.lo", [1000, 0], "above its lo"),
    ("regions.1.lo", [-100, 0], r"regions\[1\]\.lo\[0\] is -100"),
    ("regions.1.lo", [600, False], r"regions\[1\]\.lo\[1\] is false"),
    ("regions.1.lo", [600.0, 0], r"regions\[1\]\.lo\[0\] is 600\.0"),
    ("regions.1.lo", [600], "has 1 items"),
    ("regions.1.lo", "6", "a list is wanted"),
    ("regions.1.hi", [1000, 1 << 70], r"regions\[1\]\.hi\[1\]"),
    ("regions.1.at", [1, 0], r"regions\[1\] ends at 401"),
    ("regions.1.at", [1 << 62, 0], "regions"),
    ("regions.1.member", 2, r"regions\[1\]\.member is 2"),
    ("regions.1.member", None, r"regions\[1\]\.member is null"),
    ("regions.1.x", 1, "only lo, hi, member, at"),
    ("regions.1", 5, r"regions\[1\] is 5"),
    ("regions", [], "no region holds"),
    ("unknown", 1, "only version"),
]


@pytest.mark.parametrize(
    ("path", "value", "error"), BAD, ids=[f"{path}={value!s:.20}" for path, value, _ in BAD]
)
def test_what_no_writer_says(path: str, value: Any, error: str) -> None:
    with pytest.raises((logical.ManifestError, logical.AlignmentError), match=error):
        logical.Array(changed(path, value))


def test_newer_versions() -> None:
    newer = changed("version", 2)
    assert read({**newer, "x-more": 1}).shape == (1000, 4)
    with pytest.raises(cdd.UnsupportedError, match="for readers of version 2"):
        read({**newer, "min_reader": 2})


def test_slabs_along_another_dimension_and_cells() -> None:
    base = Manifest((6, 6), np.dtype("<i4"), (1, 1), (6, 6))
    member = (logical.Member("a", "named", (6, 6)),)

    def regions(*boxes: tuple[int, int, int, int]) -> list[logical.Region]:
        return [logical.Region((a, c), (b, d), "a", (a, c)) for a, b, c, d in boxes]

    good = regions((0, 6, 0, 2), (0, 6, 2, 6))
    data = np.arange(36, dtype="i4").reshape(6, 6)
    assert np.array_equal(
        logical.Array(base.with_regions(good, member), members={"a": data})[1:, 1:3], data[1:, 1:3]
    )
    for boxes, kind in (
        (((0, 6, 0, 3), (0, 6, 2, 6)), logical.OverlapError),
        (((0, 6, 0, 2), (0, 6, 3, 6)), logical.CoverageError),
        (((0, 3, 0, 3), (0, 6, 3, 6)), logical.CoverageError),
        (((0, 3, 0, 3), (2, 6, 0, 6), (0, 2, 3, 6)), logical.OverlapError),
    ):
        with pytest.raises(kind):
            logical.Array(base.with_regions(regions(*boxes), member), members={"a": data})


def test_regions_that_overlap_many_times_are_refused_at_once() -> None:
    base = Manifest((2000, 2000), np.dtype("|u1"), (1, 1), (2000, 2000))
    lines = [logical.Region((i, i), (i + 1, i + 1), "a", (0, 0)) for i in range(0, 2000, 2)]
    whole = [logical.Region((0, 0), (2000, 2000), "a", (0, 0))] * 60_000
    with pytest.raises(logical.OverlapError):
        logical.Array(base.with_regions(lines + whole, (logical.Member("a", "named", (2000, 2000)),)))


def test_too_many_cells_and_regions() -> None:
    size = 3000
    base = Manifest((size, size), np.dtype("|u1"), (1, 1), (size, size), fill_value=np.uint8(0))
    member = (logical.Member("a", "named", (1, 1)),)
    diagonal = [logical.Region((i, i), (i + 1, i + 1), "a", (0, 0)) for i in range(size)]
    with pytest.raises(logical.ManifestError, match="cells, 4,194,304 are allowed"):
        logical.Array(base.with_regions(diagonal, member))
    many = {**GOOD, "regions": [GOOD["regions"][0]] * (manifest.MAX_REGIONS + 1)}
    with pytest.raises(logical.ManifestError, match="0 to 65,536 are allowed"):
        read(many)


def test_ten_thousand_regions(tmp_path: Path) -> None:
    data = np.arange(40_000, dtype="<i4")
    value = {
        "version": 1, "min_reader": 1, "shape": [40_000], "dtype": "<i4", "grid": [4], "chunks": [40],
        "members": [{"name": f"m{i}", "kind": "named", "shape": [40_000]} for i in range(2)],
        "regions": [{"lo": [i], "hi": [i + 4], "member": i // 4 % 2, "at": [i]} for i in range(0, 40_000, 4)],
    }  # fmt: skip
    path = tmp_path / "many.json"
    path.write_text(json.dumps({ATTRIBUTE: value}))
    array = logical.open(path, members={"m0": data, "m1": data})
    assert np.array_equal(array[:], data)
    assert np.array_equal(array[17:3999:7], data[17:3999:7])
    assert array[-1] == 39_999


def test_adjacent_regions_of_a_member_are_one_read() -> None:
    calls = []

    class Counting:
        shape, dtype = (12,), np.dtype("<i4")

        def __getitem__(self, key: Any) -> np.ndarray:
            calls.append(key)
            return np.arange(12, dtype="i4")[key]

    base = Manifest((12,), np.dtype("<i4"), (4,), (4,))
    regions = [logical.Region((i,), (i + 4,), "a", (i,)) for i in (8, 0, 4)]
    array = logical.Array(
        base.with_regions(regions, (logical.Member("a", "named", (12,)),)), members={"a": Counting()}
    )
    assert array[1:11].tolist() == list(range(1, 11))
    assert calls == [(slice(1, 11, 1),)]


@pytest.mark.parametrize(
    "dtype", ["|b1", "|i1", "<u8", "<f2", "<f4", ">f8", "<c8", "<M8[ns]", "<m8[s]", "bfloat16"]
)
@given(data=st.data())
def test_fill_values_come_back_bit_for_bit(dtype: str, data: st.DataObject) -> None:
    if dtype == "bfloat16":
        pytest.importorskip("ml_dtypes")
    found = cdd.dtypes.named(dtype)
    bits = data.draw(st.binary(min_size=found.itemsize, max_size=found.itemsize))
    if dtype == "|b1":
        bits = bytes([bits[0] & 1])
    value = np.frombuffer(bits, found)[0]
    text = fill_text(value, found)
    made = Manifest((2,), found, (1,), (1,), fill_value=value).with_regions([], ())
    assert made.to_json()["fill_value"] == text
    again = read(json.loads(json.dumps(made.to_json())))
    assert np.asarray(again.fill_value, found).tobytes() == bits
    assert logical.Array(again)[:].tobytes() == bits * 2


@pytest.mark.parametrize(
    ("dtype", "text", "value"),
    [("<f4", "NaN", math.nan), ("<f4", "-Infinity", -math.inf), ("<i2", "-7", -7), ("<f8", "0.1", 0.1),
     ("<M8[s]", "NaT", np.datetime64("NaT", "s")), ("|b1", "true", True), ("<f4", "0x7fc00001", math.nan)],
)  # fmt: skip
def test_fill_texts(dtype: str, text: str, value: Any) -> None:
    raw = {**GOOD, "dtype": dtype, "fill_value": text, "members": [], "regions": []}
    found = logical.Array(raw)[5, 2]
    assert found == value or (found != found and value != value)


# ------------------------------------------------------------ damage, golden files


def test_each_flipped_byte_is_an_error_or_the_right_data(tmp_path: Path) -> None:
    data = np.arange(2800, dtype="<f4").reshape(700, 4)
    cdd.save(tmp_path / "b.cdd", data[:400])
    good = changed("members.1.id", cdd.open(tmp_path / "b.cdd").id)
    text = json.dumps({ATTRIBUTE: good}).encode()
    path = tmp_path / "m.json"
    path.write_bytes(text)
    how: dict[str, Any] = {"allow": [tmp_path], "members": {"a": data}}
    expected = logical.open(path, **how)[:]
    refused = 0
    rng = np.random.default_rng(1)
    for place in range(len(text)):
        damaged = bytearray(text)
        damaged[place] ^= 1 << int(rng.integers(8))
        path.write_bytes(damaged)
        try:
            array = logical.open(path, **how)
            found = array[:] if array.size <= 1 << 20 else None
        except (cdd.CddError, ValueError, FileNotFoundError):
            refused += 1
            continue
        # What is left says something else that is as good: other rows of a member, another name.
        assert found is None or found.dtype.itemsize * found.size <= 1 << 23
        if array.shape == expected.shape and array.regions == read(good).regions():
            assert np.array_equal(found, expected) or array.dtype != expected.dtype
    assert refused > len(text) * 0.7


def test_golden_manifests() -> None:
    names = sorted(GOLDEN.glob("logical_v*.json"))
    assert names
    for path in names:
        expected = json.loads(path.with_suffix(".expected").read_text())
        array = logical.open(path)
        assert list(array.shape) == expected["shape"]
        assert array.dtype.str == expected["dtype"]
        assert [[list(r.lo), list(r.hi), r.member, list(r.at)] for r in array.regions] == expected["regions"]
        assert np.isnan(array.fill_value)
        assert array.attrs == expected["attributes"]
        assert [dataclass_of(member) for member in array.manifest.members] == expected["members"]
        assert np.isnan(array[0:5]).all()


def dataclass_of(member: logical.Member) -> list[Any]:
    digests = [list(digest) for digest in member.digests]
    return [member.name, member.kind, list(member.shape), member.path, member.id, member.column,
            member.read_only, digests]  # fmt: skip
