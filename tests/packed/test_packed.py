"""Packed rows: opened in any buffer, read in every way, damaged in every way."""

import io
import struct

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import cdd
import cdd.csv
import cdd.packed

GOLDEN = bytes.fromhex(
    "56 53 43 4f 01 00 00 00 03 00 00 00 03 00 00 00 52 00 00 00 00 00 00 00 24 00 00 00 35 00 00 00"
    "45 00 00 00"
    "04 00 6e 61 6d 65 03 00 61 67 65 04 00 63 69 74 79 05 00 41 6c 69 63 65 02 00 33 30 03 00 4e 59 43"
    "03 00 42 6f 62 02 00 32 35 02 00 4c 41"
)
ROWS = [("name", "age", "city"), ("Alice", "30", "NYC"), ("Bob", "25", "LA")]


def test_golden_bytes() -> None:
    assert bytes(cdd.packed.pack(ROWS)) == GOLDEN
    assert bytes(cdd.csv.pack(b"name,age,city\nAlice,30,NYC\nBob,25,LA\n")) == GOLDEN
    p = cdd.packed.open(GOLDEN, check="utf8")
    assert list(p) == ROWS
    assert (len(p), p.columns, p.version, p.names) == (3, 3, 1, None)
    assert cdd.packed.open(GOLDEN, header=True).names == ROWS[0]


def test_rows_fields_and_columns(tmp_path) -> None:
    path = tmp_path / "rows.packed"
    path.write_bytes(GOLDEN)
    for source in (
        path,
        str(path),
        GOLDEN,
        bytearray(GOLDEN),
        memoryview(GOLDEN),
        np.frombuffer(GOLDEN, np.uint8),
    ):
        p = cdd.packed.open(source, header=True)
        assert list(p) == ROWS[1:]
        assert (p[0], p[-1], p[1]) == (ROWS[1], ROWS[2], ROWS[2])
        assert list(p[1:]) == ROWS[2:]
        assert list(p[:0]) == []
        assert p[1:][0] == ROWS[2]
        assert p.field(1, 2) == p.field(-1, -1) == "LA"
        assert p.bytes(0, 0) == b"Alice"
        row = p.row(-1)
        assert (row[0], row[-1], row[1:], len(row), tuple(row)) == ("Bob", "LA", ("25", "LA"), 3, ROWS[2])
        assert list(p.rows(["city", 0])) == [("NYC", "Alice"), ("LA", "Bob")]
        column = p.column("age")
        assert list(column) == ["30", "25"] == column
        assert column[-1] == "25"
        assert column.numpy(np.int64).tolist() == [30, 25]
        assert column.numpy("U").tolist() == column.numpy().tolist() == ["30", "25"]
    for wrong in (3, -4):
        with pytest.raises(IndexError, match="of 2"):
            p[wrong]
        with pytest.raises(IndexError, match="of 3"):
            p.field(0, wrong)
    with pytest.raises(KeyError, match=r"'zip'.*name, age, city"):
        p.column("zip")
    with pytest.raises(ValueError, match="without a step"):
        p[::2]


def test_a_view_keeps_its_buffer() -> None:
    buffer = bytearray(GOLDEN)
    iterator = iter(cdd.packed.open(buffer)[1:])
    with pytest.raises(BufferError):
        buffer.append(0)
    assert list(iterator) == ROWS[1:]
    del iterator
    buffer.append(0)


def test_iteration_gives_the_same_object_for_the_same_bytes() -> None:
    p = cdd.csv.pack(b"sym,n\n" + b"".join(b"BTCUSDT,%d\n" % i for i in range(100)))
    assert len({id(symbol) for symbol, _ in list(p)}) == 1
    assert [n for _, n in p] == [str(i) for i in range(100)]


@given(st.lists(st.tuples(st.text(max_size=9), st.binary(max_size=5)), max_size=20))
def test_any_rows(table: list[tuple[str, bytes]]) -> None:
    try:
        p = cdd.packed.pack(table)
    except UnicodeEncodeError:  # a lone surrogate
        return
    assert [(p.field(i, 0), p.bytes(i, 1)) for i in range(len(p))] == table
    p.verify("full")


@pytest.mark.parametrize(
    ("change", "error", "text"),
    [
        (lambda b: b[:10], cdd.TruncatedError, "24 bytes"),
        (lambda b: b[:80], cdd.TruncatedError, "82 bytes by their header"),
        (lambda b: b + b"x", cdd.FormatError, "82 bytes by their header"),
        (lambda b: b"OCSV" + b[4:], cdd.FormatError, "little-endian"),
        (lambda b: b"\0" + b[1:], cdd.FormatError, "magic"),
        (lambda b: b[:4] + struct.pack("<I", 3) + b[8:], cdd.UnsupportedError, "version 3"),
        (lambda b: b[:8] + struct.pack("<I", 2**32 - 1) + b[12:], cdd.FormatError, "do not fit"),
        (lambda b: b[:12] + struct.pack("<I", 2**32 - 1) + b[16:], cdd.FormatError, "does not fit"),
    ],
)
def test_bad_headers(change, error: type[Exception], text: str) -> None:
    with pytest.raises(error, match=text):
        cdd.packed.open(change(GOLDEN))


def test_a_bad_row_costs_itself_only() -> None:
    damaged = bytearray(GOLDEN)
    damaged[60:62] = struct.pack("<H", 900)  # the length of row 1's field 1
    p = cdd.packed.open(bytes(damaged))
    assert (p[0], p[2], p.field(1, 0)) == (ROWS[0], ROWS[2], "Alice")
    for read in (
        lambda: p[1],
        lambda: p.field(1, 1),
        lambda: p.field(1, 2),
        lambda: list(p),
        lambda: p.column(1),
    ):
        with pytest.raises(cdd.FormatError, match="row 1, field 1 at 0x3c: length 900") as caught:
            read()
        assert (caught.value.row, caught.value.field, caught.value.offset) == (1, 1, 60)
    with pytest.raises(cdd.FormatError, match="row 1"):
        cdd.packed.open(bytes(damaged), check="bounds")
    gap = bytearray(GOLDEN)
    gap[28:32] = struct.pack("<I", 54)
    cdd.packed.open(bytes(gap))
    with pytest.raises(cdd.FormatError, match="row 1"):
        cdd.packed.open(bytes(gap), check="full")


def test_every_prefix_and_flipped_bit() -> None:
    for n in range(len(GOLDEN)):
        with pytest.raises(cdd.FormatError):
            cdd.packed.open(GOLDEN[:n])
    for bit in range(len(GOLDEN) * 8):
        damaged = bytearray(GOLDEN)
        damaged[bit // 8] ^= 1 << bit % 8
        try:
            p = cdd.packed.open(bytes(damaged))
        except cdd.CddError:
            continue
        for i in range(len(p)):
            try:
                assert len(p[i]) == p.columns
            except cdd.FormatError as error:
                assert error.row == i


def test_wrong_rows() -> None:
    with pytest.raises(ValueError, match="row 1 has 1 fields"):
        cdd.packed.pack([("a", "b"), ("c",)])
    with pytest.raises(TypeError, match="str or bytes"):
        cdd.packed.pack([("a", 1)])
    with pytest.raises(TypeError, match="not a str"):
        cdd.packed.pack(["ab"])
    with pytest.raises(cdd.FormatError, match="65536 bytes"):
        cdd.packed.pack([("a" * 65_536,)])
    assert bytes(cdd.packed.pack([])) == bytes(cdd.csv.pack(b""))


def test_a_file_object_of_rows_is_no_source() -> None:
    with pytest.raises(TypeError):
        cdd.packed.open(io.BytesIO(GOLDEN))
    with pytest.raises(ValueError, match="mode 'r'"):
        cdd.packed.open(GOLDEN, "a")
