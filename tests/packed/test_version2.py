"""Version 2: rows and columns in blocks, whole, cut and damaged."""

import io
import os
import threading
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import cdd
import cdd.csv
import cdd.packed

TEXT = b"a,b,c,d,e\n1,1.5,x,true,2024-01-02T03:04:05.000000006\n2,,y,false,2024-01-03\n3,4,,true,\n"


def written(rows, columns, **options: object) -> bytes:
    made = io.BytesIO()
    with cdd.packed.open(made, "w", columns=columns, **options) as writer:
        writer.append(rows)
        assert len(writer) == len(rows)
    return made.getvalue()


@given(
    st.lists(
        st.tuples(st.text(st.characters(exclude_categories=["Cs"]), max_size=300), st.text("ab", max_size=3)),
        max_size=60,
    ),
    st.sampled_from(["none", "lz4", "zstd"]),
    st.sampled_from([1, 100, 1 << 20]),
)
def test_any_rows(rows: list[tuple[str, str]], compression: str, block_bytes: int) -> None:
    data = written(rows, ["x", "y"], compression=compression, block_bytes=block_bytes, user_meta=b"m\0")
    p = cdd.packed.open(data, check="utf8")
    assert list(p) == rows
    assert [p[i] for i in range(len(p))] == rows
    assert list(p[1:]) == rows[1:]
    assert list(p.column("x")) == [row[0] for row in rows]
    assert (p.names, p.user_meta, p.finished, p.torn_bytes, p.version) == (("x", "y"), b"m\0", True, 0, 2)


def test_widths_are_the_smallest_that_hold_the_longest_field() -> None:
    for longest, width in ((255, 1), (256, 2), (65_535, 2), (65_536, 4)):
        data = written([("x" * longest,)], ["x"], compression="none")
        second = data.index(b"PKB2", data.index(b"PKB2") + 1)
        assert data[second + 40] == width
        assert cdd.packed.open(data)[0] == ("x" * longest,)


def test_ragged_rows() -> None:
    rows = [("a",), ("b", "c", "d"), (), ("e", "")]
    p = cdd.packed.open(written(rows, ["x", "y", "z"]), check="utf8")
    assert list(p) == rows
    assert [len(p.row(i)) for i in range(4)] == [1, 3, 0, 2]
    with pytest.raises(IndexError, match="row 0 has 1 fields"):
        p.field(0, 1)


@pytest.mark.parametrize("compression", ["none", "lz4", "zstd"])
def test_blocks_of_columns(compression: str) -> None:
    c = cdd.csv.read(TEXT)
    made = io.BytesIO()
    with cdd.packed.open(made, "w", columns=c.names, types=c.types, compression=compression) as writer:
        for _ in range(3):
            writer.append(c)
    p = cdd.packed.open(made.getvalue(), check="full")
    table = p.table()
    assert table.types == c.types
    for name in c.names:
        assert list(table[name]) == list(c[name]) * 3
    part = p[2:5].table()
    assert part["b"].tolist() == [4.0, 1.5, None]
    assert list(part["c"]) == ["", "x", "y"]
    assert p[1] == ("2", "", "y", "false", "2024-01-03T00:00:00")
    assert cdd.csv.read(text_of(p)).types == c.types
    with pytest.raises(ValueError, match="columns"):
        cdd.packed.open(io.BytesIO(), "w", columns=["a"]).append(c)


def text_of(source: object, **options: object) -> bytes:
    made = io.BytesIO()
    assert cdd.csv.write(source, made, **options) == len(made.getvalue())
    return made.getvalue()


def small() -> tuple[bytes, list[tuple[str, str]]]:
    rows = [(str(i), "xy" * (i % 5)) for i in range(23)]
    made = io.BytesIO()
    with cdd.packed.open(made, "w", columns=["n", "s"]) as writer:
        for begin in range(0, 23, 7):
            writer.append(rows[begin : begin + 7])
            writer.flush()
    return made.getvalue(), rows


def test_every_prefix_gives_its_whole_blocks() -> None:
    data, rows = small()
    most = 0
    for n in range(len(data)):
        try:
            p = cdd.packed.open(data[:n])
        except cdd.FormatError:
            assert n < 256  # header and schema
            continue
        assert list(p) == rows[: len(p)]
        assert len(p) >= most
        most = len(p)
        assert p.torn_bytes > 0 or len(p) in (0, 7, 14, 21, 23)
        assert not p.finished or len(p) == 23
    assert most == 23


def test_every_flipped_bit_gives_an_error_or_the_right_rows() -> None:
    data, rows = small()
    for bit in range(len(data) * 8):
        damaged = bytearray(data)
        damaged[bit // 8] ^= 1 << bit % 8
        try:
            p = cdd.packed.open(bytes(damaged), check="utf8")
            found = list(p)
        except cdd.CddError:
            continue
        assert found == rows[: len(found)]
        assert len(found) == len(rows) or not p.finished


def test_a_damaged_block_costs_itself_only() -> None:
    data, rows = small()
    blocks = [i for i in range(0, len(data), 64) if data[i : i + 4] == b"PKB2"]
    damaged = bytearray(data)
    damaged[blocks[2] + 64] ^= 1  # of the rows 7 to 13
    p = cdd.packed.open(bytes(damaged))
    assert len(p) == 23
    assert p[0] == rows[0]
    assert list(p[14:]) == rows[14:]
    with pytest.raises(cdd.ChecksumError, match="rows from 7") as caught:
        p[8]
    assert (caught.value.row, caught.value.offset) == (7, blocks[2])


def test_unknown_flags_and_bombs() -> None:
    data, _ = small()
    with pytest.raises(cdd.FormatError):
        cdd.packed.open(data[:8] + b"\0" * 16 + data[24:])
    packed = written([("x" * 1_000_000,)], ["x"], compression="lz4")
    assert len(packed) < 10_000
    assert cdd.packed.open(packed)[0] == ("x" * 1_000_000,)


def test_a_pipe_without_seeking() -> None:
    read, write = os.pipe()
    found: list[bytes] = []

    def reader() -> None:
        with os.fdopen(read, "rb") as file:
            found.append(file.read())

    thread = threading.Thread(target=reader)
    thread.start()
    with os.fdopen(write, "wb", buffering=0) as file:
        cdd.csv.pack(b"a,b\n" + b"1,2\n" * 50_000, version=2, out=file)
    thread.join()
    p = cdd.packed.open(found[0])
    assert (len(p), p[-1], p.names) == (50_000, ("1", "2"), ("a", "b"))


def test_text_of_any_size(tmp_path) -> None:
    text = b"a,b\n1," + b"x" * 70_000 + b"\n"
    with pytest.raises(cdd.FormatError, match="version 2 takes it"):
        cdd.csv.pack(text)
    p = cdd.csv.pack(text, version="auto")
    assert (p.version, len(p.field(0, 1))) == (2, 70_000)
    assert cdd.csv.pack(b"a\n1\n", version="auto").version == 1
    path = tmp_path / "t.packed"
    assert list(cdd.csv.pack(b"a,b\n1,2\n", version=2, out=path)) == [("1", "2")]
    assert list(cdd.packed.open(path)) == [("1", "2")]
    p = cdd.packed.pack([("a", "b"), ("1", "x" * 70_000)], version=2, header=True)
    assert (p.names, len(p)) == (("a", "b"), 1)
    with pytest.raises(FileExistsError):
        cdd.packed.open(path, "x", columns=["a"])


def test_writing_csv() -> None:
    rows = [("a", "b,c"), ('d"e', "f\ng"), ("", "h\ri")]
    expected = b'a,"b,c"\n"d""e","f\ng"\n,"h\ri"\n'
    for source in (rows, cdd.packed.pack(rows), cdd.packed.pack(rows, version=2)):
        assert text_of(source, header=False) == expected
    assert text_of([("",)], header=False) == b'""\n' == text_of(cdd.packed.pack([("",)]))
    assert list(cdd.csv.pack(expected, header=False)) == rows
    floats = np.array([[0.1, 1e-30], [16012.35, -2.5]], np.float32)
    assert text_of(floats, header=False) == b"0.1,1e-30\n16012.35,-2.5\n"
    assert (
        text_of({"x": np.array([1, 2], np.uint8), "y": np.array([True, False])}) == b"x,y\n1,true\n2,false\n"
    )
    times = np.array(["2024-01-01T00:00:00.5", "1969-12-31T23:59:59.999999999"], "datetime64[ns]")
    text = text_of({"t": times})
    assert text == b"t\n2024-01-01T00:00:00.500\n1969-12-31T23:59:59.999999999\n"
    assert cdd.csv.read(text)["t"].tolist() == times.tolist()
    with pytest.raises(TypeError, match="complex"):
        text_of(np.zeros(2, complex))
    with pytest.raises(ValueError, match="takes quotes"):
        text_of(cdd.packed.pack(rows), quote=None)


@given(st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=1))
def test_floats_come_back_the_same(numbers: list[float]) -> None:
    array = np.array(numbers)
    found = cdd.csv.read(text_of({"x": array}), types={"x": float})["x"]
    assert found.view(np.int64).tolist() == array.view(np.int64).tolist()
    with np.errstate(over="ignore"):
        single = array.astype(np.float32)
    single = single[np.isfinite(single)]
    found = cdd.csv.read(text_of({"x": single}), types={"x": float})["x"]
    assert found.astype(np.float32).view(np.int32).tolist() == single.view(np.int32).tolist()


def test_golden_files() -> None:
    """Files of the first writers stay readable, and the writers still make them."""
    folder = Path(__file__).resolve().parents[1] / "golden"
    first = cdd.packed.open(folder / "packed_rows_v1.packed", check="utf8", header=True)
    assert (first.names, list(first)) == (
        ("name", "age", "city"),
        [("Alice", "30", "NYC"), ("Bob", "25", "LA")],
    )
    rows = [(str(i), "xy" * i) for i in range(9)]
    assert list(cdd.packed.open(folder / "packed_rows_v2.packed", check="utf8")) == rows
    text = b"a,b,c,d,e\n1,1.5,x,true,2024-01-02\n2,,y,false,2024-01-03\n3,4,,true,\n"
    columns = cdd.csv.read(text)
    packed = cdd.packed.open(folder / "packed_columns_v2.packed", check="full")
    table = packed[3:].table()
    assert packed.user_meta == b"m"
    assert table.types == columns.types
    assert all(list(table[name]) == list(columns[name]) for name in columns.names)
    made = io.BytesIO()
    with cdd.packed.open(
        made, "w", columns=columns.names, types=columns.types, compression="none", user_meta=b"m"
    ) as writer:
        writer.append(columns)
        writer.append(columns)
    assert made.getvalue() == (folder / "packed_columns_v2.packed").read_bytes()
