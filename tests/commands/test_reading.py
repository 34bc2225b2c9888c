"""read, head, tail, follow: rows as text and bytes."""

import csv
import gzip
import io
import json
import os
import signal
import subprocess
import sys
from importlib.metadata import entry_points
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import cdd
import cdd.csv
import cdd.dataset
import cdd.tiles
from cdd.commands.sources import Picked, pick_argument, rows_argument
from tests.commands.rig import books, fails, names_in, run, same_bits, start, well

BOOKS = books()


@pytest.fixture
def path(tmp_path: Path) -> Path:
    cdd.save(tmp_path / "a.cdd", BOOKS)
    return tmp_path / "a.cdd"


def numbers_of(text: bytes, shape: tuple[int, ...] = (50, 3), skip: int = 1) -> np.ndarray:
    """Python's own reading of CSV text."""
    rows = [[float(field) for field in line.split(",")] for line in text.decode().splitlines()[skip:]]
    return np.array(rows).reshape(-1, *shape)


# ---------------------------------------------------------------- forms


def test_gz_is_compressed(path: Path, tmp_path: Path) -> None:
    for form in ("csv", "jsonl", "npy"):
        out = tmp_path / f"o.{form}.gz"
        well("read", path, "0:3", "-o", out)
        assert gzip.decompress(out.read_bytes()) == well("read", path, "0:3", "--as", form)
    assert ".zst is read and not written" in fails(2, "read", path, "-o", tmp_path / "o.csv.zst")
    assert not (tmp_path / "o.csv.zst").exists()


def test_csv(path: Path) -> None:
    text = well("read", path)
    head, first, *_ = text.decode().splitlines()
    assert head == ",".join(f"l{level}_f{feature}" for level in range(50) for feature in range(3))
    assert first.split(",")[:3] == [str(value).removesuffix(".0") for value in BOOKS[0, 0]]
    np.testing.assert_array_equal(numbers_of(text).astype(np.float32)[:200], BOOKS[:200])
    assert well("read", path, "--no-header") == text.split(b"\n", 1)[1]
    tabs = well("read", path, "--delimiter", "tab")
    assert tabs == text.replace(b",", b"\t")
    numbered = well("read", path, "5:8", "--row").decode().splitlines()
    assert [line.split(",")[0] for line in numbered] == ["row", "5", "6", "7"]


def test_csv_of_numbers_that_need_quotes(path: Path) -> None:
    text = well("read", path, "99:100", "--features", 0, "--delimiter", ".", "--no-header").decode()
    (fields,) = csv.reader([text], delimiter=".")
    np.testing.assert_array_equal(np.array(fields, np.float32), BOOKS[99, :, 0])
    assert '"' in text


def test_json_lines(path: Path) -> None:
    text = well("read", path, "--json")
    assert text == well("read", path, "--as", "jsonl")
    back = np.array([json.loads(line) for line in text.splitlines()], np.float32)
    differ = back.view(np.uint32) != BOOKS.view(np.uint32)
    back[abs(back) == np.float32(7.038531e-26)] = 0  # by way of float64 only this one is another number
    assert differ.sum() <= 2
    assert np.signbit(back[250, 1, 1])
    rows = [json.loads(line) for line in well("read", path, "4:6", "--json", "--row").splitlines()]
    assert [row["row"] for row in rows] == [4, 5]
    np.testing.assert_array_equal(np.array(rows[1]["values"], np.float32), BOOKS[5])


def test_npy_and_raw(path: Path, tmp_path: Path) -> None:
    assert same_bits(np.load(io.BytesIO(well("read", path, "--as", "npy"))), BOOKS)
    assert well("read", path, "--as", "raw") == BOOKS.tobytes()
    out = tmp_path / "some.npy"
    well("read", path, "100:200:7", "--levels", "10:20", "--features", "0,2", "-o", out)
    assert same_bits(np.load(out), np.ascontiguousarray(BOOKS[100:200:7, 10:20, ::2]))


def test_arrow(path: Path) -> None:
    pa = pytest.importorskip("pyarrow")
    table = pa.ipc.open_stream(well("read", path, "2:9", "--as", "arrow", "--row")).read_all()
    assert table.column_names[:3] == ["row", "l0_f0", "l0_f1"]
    assert table["row"].to_pylist() == list(range(2, 9))
    np.testing.assert_array_equal(table["l7_f2"].to_numpy(), BOOKS[2:9, 7, 2])


@pytest.mark.parametrize(
    "dtype",
    ["bool", "int8", "uint16", "int64", "uint64", "float16", "float64", "datetime64[ms]", "timedelta64[s]"],
)
@pytest.mark.parametrize("shape", [(), (4,), (2, 3, 2)])
def test_every_dtype_that_has_text(tmp_path: Path, dtype: str, shape: tuple[int, ...]) -> None:
    rng = np.random.default_rng(3)
    kind = np.dtype(dtype)
    array = rng.integers(0, 2 if kind.kind == "b" else 100, (20, *shape)).astype(dtype)
    if kind.kind == "i":
        array[3] = np.iinfo(kind).min
    if kind.kind == "u":
        array[3] = np.iinfo(kind).max
    if kind.kind == "M":
        array[3] = "NaT"
        array[4] = "2024-02-29T12:34:56.789"
    cdd.save(tmp_path / "a.cdd", array)
    flat = array.reshape(20, -1)
    rows = [line.split(",") for line in well("read", tmp_path / "a.cdd").decode().splitlines()[1:]]
    lines = [json.loads(line) for line in well("read", tmp_path / "a.cdd", "--json").splitlines()]
    for row, line, wanted in zip(rows, lines, flat, strict=True):
        items = np.array(line, object).reshape(-1).tolist()
        assert len(row) == len(items) == len(wanted)
        for field, item, value in zip(row, items, wanted, strict=True):
            if kind.kind == "M":
                if np.isnat(value):
                    assert (field, item) in (("", None), ('""', None))
                else:
                    assert np.datetime64(field) == np.datetime64(item) == value
            elif kind.kind == "b":
                assert field == str(bool(value)).lower()
                assert item is bool(value)
            elif kind.kind == "f":
                assert kind.type(field) == kind.type(item) == value
            else:
                assert int(field) == item == value.astype(np.int64 if kind.kind == "m" else dtype)
    names = well("read", tmp_path / "a.cdd", "0:0").decode().strip().split(",")
    assert names[-1] == {0: "value", 1: "f3", 3: "i1_i2_i1"}[len(shape)]


def test_dtypes_without_text(tmp_path: Path) -> None:
    cdd.save(tmp_path / "a.cdd", np.ones((3, 2), np.complex64))
    assert "no text of complex64" in fails(1, "read", tmp_path / "a.cdd")
    assert well("read", tmp_path / "a.cdd", "--as", "raw") == np.ones((3, 2), np.complex64).tobytes()
    cdd.save(tmp_path / "b.cdd", np.array(["3000-01-01"], "datetime64[s]"))
    assert "1678" in fails(1, "read", tmp_path / "b.cdd")
    with pytest.raises(ValueError, match="1678"):
        cdd.csv.write(np.array(["3000-01-01"], "datetime64[s]"), tmp_path / "out.csv")


# ---------------------------------------------------------------- which rows


@given(*[st.none() | st.integers(-25, 25)] * 2, st.none() | st.integers(-7, 7).filter(bool))
def test_rows_are_numpys(begin: int | None, end: int | None, step: int | None) -> None:
    memory = cdd.Memory()
    rows = np.arange(20 * 4 * 2).reshape(20, 4, 2)
    cdd.save(memory, rows)
    text = ":".join("" if part is None else str(part) for part in (begin, end, step))
    key = rows_argument(text)
    picked = Picked(cdd.open(memory), key)
    found = [row for _, block in picked.blocks() for row in block]
    assert np.array_equal(np.array(found).reshape(-1, 4, 2), rows[begin:end:step])
    part = Picked(cdd.open(memory), key, pick_argument("3,0"), pick_argument("1"))
    found = [row for _, block in part.blocks() for row in block]
    assert np.array_equal(np.array(found).reshape(-1, 2), rows[begin:end:step, [3, 0], 1])
    assert part.names() == ["l3_f1", "l0_f1"]


def test_rows_from_the_end(path: Path) -> None:
    assert well("read", path, "-3:", "--as", "raw") == BOOKS[-3:].tobytes()
    assert well("read", path, "-9:-3:2", "--levels", "-2:", "--as", "raw") == BOOKS[-9:-3:2, -2:].tobytes()
    assert well("read", path, "-1", "--as", "raw") == BOOKS[-1:].tobytes()
    assert well("read", path, "7", "--as", "raw") == BOOKS[7:8].tobytes()
    assert well("read", path, "--as", "raw", "7:9") == BOOKS[7:9].tobytes()
    assert well("read", "--as", "raw", path, "-9:-7") == BOOKS[-9:-7].tobytes()
    assert "unrecognized arguments: 3" in fails(2, "read", path, "1:2", "--as", "raw", "3")
    assert "rows are A:B" in fails(2, "read", path, "--as", "raw", "x")
    assert well("head", path, "-n", "2", "--as", "raw") == BOOKS[:2].tobytes()
    assert well("tail", path, "-n", "2", "--as", "raw") == BOOKS[-2:].tobytes()
    assert well("tail", path, "-n", "100000", "--as", "raw") == BOOKS.tobytes()


def test_rows_by_time(path: Path, tmp_path: Path) -> None:
    start_time = np.datetime64("2024-03-01T10:00", "ms")
    times = start_time + np.arange(len(BOOKS)) * np.timedelta64(100, "ms")
    cdd.save(tmp_path / "t.cdd", times)
    wanted = BOOKS[100:300].tobytes()
    ten, thirty = "2024-03-01T10:00:10Z", "2024-03-01T10:00:30"
    given = "--from", ten, "--to", thirty, "--as", "raw"
    assert well("read", path, "--time", tmp_path / "t.cdd", *given) == wanted
    east = "--from", "2024-03-01T15:30:10+05:30", *given[2:]
    assert well("read", path, "--time", tmp_path / "t.cdd", *east) == wanted
    assert "--time TIMES" in fails(2, "read", path, *given)
    assert "one item a row" in fails(2, "read", tmp_path / "t.cdd", "--time", path, *given)
    cdd.save(tmp_path / "few.cdd", times[:9])
    assert "times have 9 rows" in fails(2, "read", path, "--time", tmp_path / "few.cdd", *given)
    soon = "--from", "soon"
    assert "'soon' is no time" in fails(2, "read", path, "--time", tmp_path / "t.cdd", *soon)
    assert "not by both" in fails(2, "read", path, "1:2", "--time", tmp_path / "t.cdd", *given)
    with cdd.dataset.open(tmp_path / "day", "w", clock="time") as w:
        w.append(time=times, book=BOOKS)
    assert well("read", tmp_path / "day" / "book", *given) == wanted
    assert well("read", tmp_path / "day/book", "--to", "2024-03-01", "--as", "raw") == b""


# ---------------------------------------------------------------- other sources


def test_columns_of_a_dataset(tmp_path: Path) -> None:
    with cdd.dataset.open(tmp_path / "day", "w") as w:
        w.append(book=BOOKS[:9], side=np.array(["buy", "sell, really", "buy"] * 3))
        w["trades"].append(size=np.arange(4))
    assert well("read", tmp_path / "day" / "book", "--as", "raw") == BOOKS[:9].tobytes()
    assert well("read", tmp_path / "day/trades/size").split() == [b"value", b"0", b"1", b"2", b"3"]
    assert well("head", tmp_path / "day/side", "-n", "2").splitlines() == [
        b"value",
        b"buy",
        b'"sell, really"',
    ]
    assert (
        well("read", tmp_path / "day/side", "1:2", "--json", "--row")
        == b'{"row": 1, "values": "sell, really"}\n'
    )
    assert "name one of book, side, trades/size" in fails(2, "read", tmp_path / "day")
    assert "no column 'price'" in fails(2, "read", tmp_path / "day" / "price")


def test_tiles(tmp_path: Path) -> None:
    frames = np.arange(6 * 4 * 5, dtype=np.uint16).reshape(6, 4, 5)
    with cdd.tiles.open(tmp_path / "camera", "w", shape=(None, 4, 5), dtype="uint16") as w:
        w.append(frames)
    assert well("read", tmp_path / "camera", "1:6:2", "--as", "raw") == frames[1:6:2].tobytes()
    assert well("head", tmp_path / "camera", "-n", "1").decode().splitlines()[1] == ",".join(
        map(str, range(20))
    )


# ---------------------------------------------------------------- live


def test_follow_beside_a_writer(tmp_path: Path) -> None:
    path = tmp_path / "live.cdd"
    with cdd.open(path, "w") as w:
        w.append(BOOKS[:10])
        w.flush()
        command = start("tail", path, "-n", "2", "-f", "--as", "raw", "--timeout", "20")
        assert command.stdout is not None
        size = BOOKS[0].nbytes
        assert command.stdout.read(2 * size) == BOOKS[8:10].tobytes()
        for begin in range(10, 50, 10):
            w.append(BOOKS[begin : begin + 10])
            w.flush()
            assert command.stdout.read(10 * size) == BOOKS[begin : begin + 10].tobytes()
    command.kill()
    command.communicate()


def test_follow_a_column_and_tiles(tmp_path: Path) -> None:
    size = BOOKS[0].nbytes
    with cdd.dataset.open(tmp_path / "day", "w") as w:
        w.append(book=BOOKS[:10], n=np.arange(10))
        w.flush()
        command = start("tail", tmp_path / "day/book", "-n", "1", "-f", "--as", "raw", "--timeout", "20")
        assert command.stdout is not None
        assert command.stdout.read(size) == BOOKS[9].tobytes()
        w.append(book=BOOKS[10:14], n=np.arange(4))
        w.flush()
        assert command.stdout.read(4 * size) == BOOKS[10:14].tobytes()
    command.kill()
    command.communicate()
    with cdd.tiles.open(tmp_path / "camera", "w", shape=(None, 4, 5), dtype="uint16") as tiles:
        tiles.append(np.ones((3, 4, 5), np.uint16))
    last = well("tail", tmp_path / "camera", "-f", "-n", "2", "--timeout", "10ms", "--as", "raw")
    assert last == b"\1\0" * 40
    assert "--reopen" in fails(2, "follow", tmp_path / "camera", "--reopen")


def test_follow_ends_after_a_while(path: Path) -> None:
    assert well("follow", path, "--timeout", "10ms") == b""
    text = well("tail", path, "-n", "3", "-f", "--timeout", "10ms", "--row", "--features", "0")
    lines = text.decode().splitlines()
    assert lines[0].startswith("row,l0_f0,l1_f0,")
    assert [line.split(",")[0] for line in lines[1:]] == ["497", "498", "499"]
    assert "npy" in fails(2, "follow", path, "--as", "npy")


@pytest.mark.skipif(os.name == "nt", reason="signals are POSIX's")
def test_interrupted(path: Path) -> None:
    command = start("tail", path, "-n", "1", "-f", "--as", "raw")
    assert command.stdout is not None
    command.stdout.read(1)
    command.send_signal(signal.SIGINT)
    _, error = command.communicate(timeout=20)
    assert (command.returncode, error) == (130, b"")


@pytest.mark.skipif(os.name == "nt", reason="pipes end otherwise there")
@pytest.mark.parametrize("form", ["csv", "jsonl", "npy", "raw"])
def test_a_pipe_that_closes_ends_quietly(path: Path, form: str) -> None:
    cdd.save(path, np.tile(BOOKS, (4, 1, 1)))  # more than a pipe holds
    command = start("read", path, "--as", form)
    assert command.stdout is not None
    command.stdout.read(10)
    command.stdout.close()
    assert command.wait(20) == 1
    assert command.stderr is not None
    assert command.stderr.read() == b""
    command.stderr.close()
    command.stdin.close()  # type: ignore[union-attr]


# ---------------------------------------------------------------- what is wrong


def test_output_is_whole_or_not_there(path: Path, tmp_path: Path) -> None:
    out = tmp_path / "out.csv"
    out.write_text("precious")
    assert "--overwrite" in fails(1, "read", path, "-o", out)
    assert out.read_text() == "precious"
    content = bytearray(path.read_bytes())
    with cdd.open(path) as reader:
        place = reader.chunk_infos[reader.nchunks // 2].offset + 40
    content[place] ^= 1
    path.write_bytes(content)
    text = fails(1, "read", path, "-o", out, "--overwrite")
    assert "chunk" in text
    assert "check" in text
    assert out.read_text() == "precious"
    assert names_in(tmp_path) == ["a.cdd", "out.csv"]


def test_wrong_arguments(path: Path, tmp_path: Path) -> None:
    for wrong in (["1;2"], ["1:2:3:4"], ["--levels", "x"], ["--as", "xml"], ["--timeout", "5"], []):
        arguments = [path, *wrong] if wrong else []
        assert "usage" in fails(2, "read", *arguments)
    assert "step" in fails(2, "read", path, "::0")
    assert "delimiter" in fails(2, "read", path, "--delimiter", "ab")
    assert "3 names" in fails(2, "read", path, "--columns", "a,b,c")
    assert "numbers of rows" in fails(2, "read", path, "--row", "--as", "npy")
    assert "No such file" in fails(1, "read", tmp_path / "none.cdd")
    assert "index 50 is not one of 50 levels" in fails(2, "read", path, "--levels", "50")
    (tmp_path / "text").write_text("hello " * 100)
    assert "not a cdd file" in fails(1, "read", tmp_path / "text")


def test_a_store_without_rows(tmp_path: Path) -> None:
    cdd.open(tmp_path / "new.cdd", "w").close()
    assert "nothing was appended" in fails(1, "read", tmp_path / "new.cdd")
    cdd.save(tmp_path / "empty.cdd", BOOKS[:0])
    assert np.load(io.BytesIO(well("read", tmp_path / "empty.cdd", "--as", "npy"))).shape == (0, 50, 3)


def test_the_programs() -> None:
    found = {entry.name: entry.value for entry in entry_points(group="console_scripts")}
    if "cdd-read" not in found:
        pytest.skip("the package is not installed, its sources are tested")
    assert found["cdd-read"] == "cdd.commands:read"
    for name in ("cdd-read", "cdd-append"):
        program = Path(sys.executable).with_name(name)
        done = subprocess.run([program, "--help"], capture_output=True, text=True, check=True)
        assert f"usage: {name}" in done.stdout
        assert "examples:" in done.stdout
        assert "Exit status" in done.stdout
    done = subprocess.run([Path(sys.executable).with_name("cdd-read")], capture_output=True, check=False)
    assert done.returncode == 2


def test_commands_need_nothing_but_numpy() -> None:
    """What plug-ins import is not there for everybody."""
    code = (
        "import sys; plug_ins = 'websockets', 'matplotlib', 'pyarrow', 'zarr', 'torch';"
        "sys.modules.update(dict.fromkeys(plug_ins));"
        "from cdd.commands import main; main(['--help'])"
    )
    done = subprocess.run([sys.executable, "-P", "-c", code], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


def test_no_progress_into_a_pipe(path: Path) -> None:
    assert run("read", path, "--as", "raw").stderr == b""


def test_progress_on_a_terminal(path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from cdd.commands import main, terminal

    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    now = iter(range(1_000_000))
    monkeypatch.setattr(terminal.time, "monotonic", lambda: float(next(now)))
    monkeypatch.setattr(sys, "stderr", Terminal())
    assert main(["read", str(path), "-o", str(tmp_path / "out.csv")]) == 0
    assert "100 % of 500 rows" in sys.stderr.getvalue()  # type: ignore[attr-defined]
    assert sys.stderr.getvalue().endswith("\r\033[K")  # type: ignore[attr-defined]
