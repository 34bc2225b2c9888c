"""Columns of version 2 in their smaller forms: texts by dictionary, numbers by the codec of the stores."""

import io
import struct
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import cdd
import cdd.csv

TRADES = ("id,price,qty,time,side,note\n" + "".join(
    f"{i},{61800 + i % 50 / 10},{i % 7 / 1000},{1723161256322 + 37 * i},{'buy' if i % 3 else 'sell'},n{i}\n"
    for i in range(5000)
)).encode()  # fmt: skip


def written(columns: cdd.csv.Columns, compression: str = "lz4", times: int = 1) -> bytes:
    made = io.BytesIO()
    types = columns.types
    with cdd.packed.open(made, "w", columns=columns.names, types=types, compression=compression) as writer:
        for _ in range(times):
            writer.append(columns)
    return made.getvalue()


def directory(data: bytes, columns: int) -> list[tuple[int, int, int, int]]:
    """(type, encoding, width, codec) of each column of the first block of columns."""
    at = next(i for i in range(0, len(data), 64) if data[i : i + 6] == b"PKB2\x03\x00")
    entries = (data[at + 64 + 40 * c :][:40] for c in range(columns))
    return [struct.unpack("<HBBH", entry[:6]) for entry in entries]


def same(a: cdd.csv.Columns, b: cdd.csv.Columns) -> bool:
    return a.types == b.types and all(list(a[name]) == list(b[name]) for name in a.names)


@pytest.mark.parametrize("compression", ["lz4", "zstd"])
def test_what_is_smaller_is_taken(compression: str) -> None:
    columns = cdd.csv.read(TRADES)
    data = written(columns, compression)
    plain = written(columns, "none")
    found = directory(data, 6)
    assert (found[0][1], found[3][1]) == (3, 3)  # numbers that go on; others may do without
    assert all(entry[3] == (6 if entry[1] == 3 else 0) for entry in found)
    assert found[4][0] == 0x4002 and found[4][2] == 1
    assert found[5][0] == 0x4000  # each note once: no dictionary
    assert all(entry[1:] == (0, 0, 0) for entry in directory(plain, 6))
    assert len(data) * 3 < len(plain)
    packed = cdd.packed.open(data, check="full")
    assert same(packed.table(), columns) and same(packed[17:4711].table(), columns[17:4711])
    assert list(packed) == list(cdd.packed.open(plain))


def test_wide_codes_and_nulls() -> None:
    rows = [f"{'' if i % 5 == 0 else i},w{i % 700},{'true' if i % 2 else ''}" for i in range(4000)]
    columns = cdd.csv.read(("a,b,c\n" + "\n".join(rows) + "\n").encode())
    data = written(columns, times=3)
    found = directory(data, 3)
    assert found[0][1] == 3 and found[1][0] == 0x4002 and found[1][2] == 2
    table = cdd.packed.open(data, check="full").table()
    assert len(table) == 12_000
    for name in columns.names:
        assert list(table[name])[4000:8000] == list(columns[name])
        assert table.nulls(name).tolist() == columns.nulls(name).tolist() * 3


@given(
    st.lists(
        st.tuples(st.sampled_from(["", "a", "bb", "\u00e9"]), st.integers(-(2**63), 2**63 - 1)), min_size=1
    ),
    st.sampled_from(["lz4", "zstd"]),
)
def test_any_columns(rows: list[tuple[str, int]], compression: str) -> None:
    made = io.BytesIO()
    types = {"t": "text", "n": "int64"}
    columns = cdd.csv.read(("t,n\n" + "".join(f'"{t}",{n}\n' for t, n in rows * 20)).encode(), types=types)
    with cdd.packed.open(made, "w", columns=["t", "n"], types=types, compression=compression) as writer:
        writer.append(columns)
    table = cdd.packed.open(made.getvalue(), check="full").table()
    assert list(table["t"]) == [t for t, _ in rows * 20]
    assert table["n"].tolist() == [n for _, n in rows * 20]


def test_every_flipped_bit_gives_an_error_or_the_right_columns() -> None:
    columns = cdd.csv.read(b"a,b,c\n" + b"".join(b"%d,x%d,%d\n" % (i, i % 3, 5 * i) for i in range(40)))
    data = written(columns)
    for bit in range(8 * len(data)):
        damaged = bytearray(data)
        damaged[bit // 8] ^= 1 << bit % 8
        try:
            table = cdd.packed.open(bytes(damaged), check="full").table()
        except (cdd.FormatError, cdd.UnsupportedError):
            continue
        assert len(table) == 0 or same(table, columns), bit


def test_prefixes() -> None:
    columns = cdd.csv.read(b"a,b\n" + b"".join(b"%d,x%d\n" % (i, i % 3) for i in range(50)))
    data = written(columns, times=2)
    for end in range(len(data)):
        try:
            packed = cdd.packed.open(data[:end])
        except cdd.FormatError:
            continue
        assert len(packed) in (0, 50, 100)
        table = packed.table() if len(packed) else None
        assert table is None or np.array_equal(table["a"], np.tile(columns["a"], len(packed) // 50))


def sealed(data: bytes, at: int, change: dict[int, bytes]) -> bytes:
    """A file whose block of columns at `at` has other bytes in its first column's entry, all checks right."""
    made = bytearray(data)
    for offset, value in change.items():
        made[at + 64 + offset : at + 64 + offset + len(value)] = value
    return bytes(made)


def test_entries_that_no_writer_makes() -> None:
    """Checks cannot be made anew from here, so that damage shows as a check that does not hold, or before."""
    columns = cdd.csv.read(TRADES)
    data = written(columns)
    at = next(i for i in range(0, len(data), 64) if data[i : i + 6] == b"PKB2\x03\x00")
    for change in ({2: b"\x04"}, {3: b"\x07"}, {4: b"\x63"}, {0: b"\x02\x40"}, {16: b"\xff\xff\xff\x7f"}):
        with pytest.raises((cdd.FormatError, cdd.UnsupportedError)):
            cdd.packed.open(sealed(data, at, change), check="full").table()


def golden_columns() -> cdd.csv.Columns:
    rows = (
        f"{1000 + 3 * i},{'' if i % 7 == 0 else i * i % 1009},{61800 + i % 50 / 10},w{i % 700},{'ab'[i % 2]},"
        f"n{i * 37 % 1000},{'true' if i % 3 else 'false'},2024-01-02T03:04:{i % 60:02}"
        for i in range(1400)
    )
    return cdd.csv.read(("id,hole,price,word,side,note,flag,time\n" + "\n".join(rows) + "\n").encode())


@pytest.mark.parametrize("compression", ["lz4", "zstd"])
def test_golden_files_of_smaller_forms(compression: str) -> None:
    """Files of the first writers stay readable. The bytes of LZ4 and zstd are their library's, so that a
    writer need not make them again."""
    data = (Path(__file__).parents[1] / f"golden/packed_encoded_{compression}_v2.packed").read_bytes()
    found = directory(data, 8)
    compressed = {"lz4": 1, "zstd": 2}[compression]
    assert {entry[1] for entry in found} == {compressed, 3}  # and a dictionary of one byte and of two
    assert [entry[:1] + entry[2:3] for entry in found[3:5]] == [(0x4002, 2), (0x4002, 1)]
    packed = cdd.packed.open(data, check="utf8")
    columns = golden_columns()
    assert same(packed.table(), columns)
    assert packed.table().nulls("hole").tolist() == [i % 7 == 0 for i in range(1400)]
    assert list(packed[5:9]) == list(cdd.csv.pack(text_of(columns)))[5:9]


def text_of(columns: cdd.csv.Columns) -> bytes:
    made = io.BytesIO()
    cdd.csv.write(columns, made)
    return made.getvalue()
