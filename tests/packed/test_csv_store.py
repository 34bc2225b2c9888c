"""CSV into stores, by the functions and by the commands; what is refused before anything is written."""

import io
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import cdd
import cdd.csv
import cdd.packed
from cdd.packed.storing import lost_in, stored_names
from tests.packed.pipe import Pipe

ROOT = Path(__file__).resolve().parents[2]


def book(rows: int) -> np.ndarray:
    rng = np.random.default_rng(1)
    return (np.round(rng.uniform(0.01, 900, (rows, 50, 3)), 2)).astype(np.float32)


def test_a_book(tmp_path) -> None:
    array, path, target = book(300), tmp_path / "book.csv", tmp_path / "book.cdd"
    cdd.csv.write(array, path)
    told: list[tuple[int, int]] = []
    report = cdd.csv.store(path, target, shape=(50, 3), progress=lambda *how: told.append(how))
    assert (report.rows, report.appended) == (300, 300)
    assert told[-1] == (path.stat().st_size, path.stat().st_size)
    with cdd.open(target) as reader:
        assert reader.dtype == np.float32
        assert np.array_equal(reader[:], array)
        back = tmp_path / "back.csv"
        cdd.csv.write(reader, back)
    assert back.read_bytes() == path.read_bytes()
    with pytest.raises(FileExistsError):
        cdd.csv.store(path, target, shape=(50, 3))
    cdd.csv.write(np.concatenate([array, array]), path)
    assert cdd.csv.store(path, target, shape=(50, 3), resume=True).appended == 300
    with cdd.open(target) as reader:
        assert np.array_equal(reader[300:], array)
    assert cdd.csv.store(path, target, shape=(50, 3), overwrite=True).rows == 600


def test_recorded_books(recorded, tmp_path) -> None:
    array = recorded("lob/es_1s")[:400]
    cdd.csv.write(array, tmp_path / "book.csv")
    cdd.csv.store(tmp_path / "book.csv", tmp_path / "book.cdd", shape=(50, 3))
    with cdd.open(tmp_path / "book.cdd") as reader:
        assert reader[:].tobytes() == array.tobytes()


@pytest.mark.parametrize(
    ("text", "options", "what"),
    [
        (b"a,b\n1,1.23456789\n", {"shape": (2,)}, "1 number .*row 0: 1.23456789"),
        (b"a,b\n1,\n2,3\n", {}, "'b' has no value in row 0"),
        (b"a,b\n1,x\n", {}, "'b' is text"),
        (b"a,a\n1,2\n", {}, "columns 0 and 1 are both called 'a'"),
        (b"a,b,c\n1,2,3\n", {"shape": (2,)}, "takes 2 columns, there are 3"),
        (b"a,b\n1,2\n", {"clock": "a"}, "single store has no clock"),
    ],
)
def test_what_is_refused_leaves_nothing(tmp_path, text: bytes, options: dict, what: str) -> None:
    target = tmp_path / "x.cdd"
    with pytest.raises(ValueError, match=what):
        cdd.csv.store(text, target, **options)
    assert not target.exists()


def test_what_can_be_taken_is(tmp_path) -> None:
    target = tmp_path / "x.cdd"
    report = cdd.csv.store(b"a,b\n1,1.23456789\n", target, shape=(2,), lossy=True)
    assert report.lossy == {"b": (1, 0, 1.23456789)}
    assert "rounded" in str(report)
    cdd.csv.store(b"a,b\n1,\n2,3\n", target, null=-1, overwrite=True)
    with cdd.open(target) as reader:
        assert reader[:].tolist() == [[1, -1], [2, 3]]
    cdd.csv.store(b"a,b\n1,1.23456789\n", target, shape=(2,), dtype="float64", overwrite=True)
    with cdd.open(target) as reader:
        assert reader[0, 1] == 1.23456789


def test_decimals_that_float32_does_not_hold() -> None:
    for text in ("0.1", "16012.35", "1e10", "123456", "0.000123456", "8388607.5", "0", "-3.5"):
        assert not len(lost_in(np.array([float(text)]), np.dtype(np.float32))), text
    for text in ("16012.3456", "16777217", "0.123456789", "1234567.89"):
        assert len(lost_in(np.array([float(text)]), np.dtype(np.float32))), text


@pytest.mark.parametrize(
    ("dtype", "number", "is_held"),
    [
        ("int32", "5000000000", False),
        ("int32", "1.5", False),
        ("int32", "-2147483648", True),
        ("uint8", "-1", False),
        ("uint8", "256", False),
        ("uint8", "255", True),
        ("int64", "9007199254740993", True),
        ("int64", "1e19", False),
        ("uint64", "9223372036854775808", True),
        ("bool", "2", False),
        ("float64", "9007199254740993", False),
        ("float64", "-9007199254740993", False),
        ("float64", "9223372036854775807", False),
        ("float64", "9007199254740994", True),
        ("float32", "16777217", False),
        ("float32", "9007199254740993", False),
        ("float16", "100000", False),
        ("float16", "0.1", True),
        ("float16", "2049", False),
    ],
)
@pytest.mark.parametrize("is_pipe", [False, True])
def test_a_number_that_a_dtype_does_not_hold_is_no_other_number(
    tmp_path, dtype: str, number: str, is_held: bool, is_pipe: bool
) -> None:
    target, text = tmp_path / "x.cdd", f"a,b\n1,0\n0,{number}\n".encode()
    source: Any = Pipe(text) if is_pipe else text
    types = (
        "float64"
        if "." in number or "e" in number
        else "uint64"
        if "922337203685477580" in number
        else "int64"
    )
    if not is_held:
        with pytest.raises(ValueError, match=f"'b' has 1 number that {dtype} does not hold.* row 1: "):
            cdd.csv.store(source, target, {"b": types}, dtype=dtype)
        assert is_pipe or not target.exists()
        return
    cdd.csv.store(source, target, {"b": types}, dtype=dtype)
    with cdd.open(target) as reader:
        assert reader[1, 1] == np.dtype(dtype).type(number)


def test_whole_numbers_are_not_rounded_by_lossy(tmp_path) -> None:
    with pytest.raises(ValueError, match="int32 does not hold"):
        cdd.csv.store(b"a\n1.5\n", tmp_path / "x.cdd", dtype="int32", lossy=True)
    report = cdd.csv.store(b"a\n9007199254740993\n", tmp_path / "x.cdd", lossy=True)
    assert report.lossy == {"a": (1, 0, 9007199254740993)}


def test_what_stands_for_a_null_is_kept_as_it_is(tmp_path) -> None:
    dataset = pytest.importorskip("cdd.dataset")
    text, target = b"a,b\n,1.5\n2,3\n", tmp_path / "x.cdd"
    for null in (float("nan"), 1.5):
        cdd.csv.store(text, target, null=null, overwrite=True)
        with cdd.open(target) as reader:
            np.testing.assert_array_equal(reader[:], [[null, 1.5], [2, 3]])
        with pytest.raises(ValueError, match="'a' is int64, which does not hold null="):
            cdd.csv.store(text, tmp_path / f"set {null}", null=null)
        with pytest.raises(ValueError, match="'a' is int64, which does not hold null="):
            cdd.csv.store(text, target, dtype="int32", null=null, overwrite=True)
        cdd.csv.store(text, tmp_path / f"set {null}", {"a": "float64"}, null=null)
        with dataset.open(tmp_path / f"set {null}") as ds:
            np.testing.assert_array_equal(ds["a"][:], [null, 2])
    with pytest.raises(ValueError, match="float32 does not hold"):
        cdd.csv.store(text, target, dtype="float32", null=1e300, overwrite=True)


def test_the_row_of_a_text_among_numbers(tmp_path) -> None:
    text = b"a,b\n1,2\n3,x\n"
    with pytest.raises(ValueError, match=r"types=\{'b': \"float64\"\} names the row"):
        cdd.csv.store(text, tmp_path / "x.cdd")
    with pytest.raises(cdd.FormatError, match="row 2, field 1"):
        cdd.csv.store(text, tmp_path / "x.cdd", types={"b": "float64"})


def test_names() -> None:
    given = ["Open time", "amount (USD)", "", "data", "x", "1h"]
    assert list(stored_names(given).values()) == ["Open_time", "amount_USD", "column_2", "data_", "x", "c_1h"]


def test_a_dataset(tmp_path) -> None:
    dataset = pytest.importorskip("cdd.dataset")
    text = b"ts,Open time,sym,n\n1,2.5,BTC,7\n3,4.5,ETH,8\n2,5.5,BTC,9\n"
    target = tmp_path / "trades"
    with pytest.raises(ValueError, match="row 2 is before"):
        cdd.csv.store(text, target, clock="ts")
    assert not target.exists()
    report = cdd.csv.store(text, target, clock="ts", sort=True)
    assert (report.rows, report.columns["Open time"]) == (3, "Open_time")
    with dataset.open(target) as ds:
        assert ds["ts"][:].tolist() == [1, 2, 3]
        assert ds["Open_time"][:].tolist() == [2.5, 5.5, 4.5]
        names = ds["sym"].categories
        assert [names[code] for code in ds["sym"][:]] == ["BTC", "BTC", "ETH"]
        assert ds.attrs["csv_names"] == {"Open_time": "Open time"}
    books = book(50)
    header = ",".join(["ts", *(f"c{i}" for i in range(150))])
    made = io.BytesIO()
    columns = dict(zip(header.split(","), [np.arange(50), *books.reshape(50, 150).T], strict=True))
    cdd.csv.write(columns, made)
    report = cdd.csv.store(made.getvalue(), tmp_path / "books", shape=(50, 3), clock="ts")
    with dataset.open(tmp_path / "books") as ds:
        assert np.array_equal(ds["book"][:], books)
        assert ds["ts"][:].tolist() == list(range(50))


def test_going_on_with_texts_beside(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr("cdd.packed.storing.FEW", 3)
    lines = [f"{i},note {i},{'ab'[i % 2]}" for i in range(3000)]
    text = "n,note,side\n" + "\n".join(lines) + "\n"
    target = tmp_path / "notes"
    first = cdd.csv.store(text[: text.index("1200,note")].encode(), target)
    assert (first.rows, first.beside) == (1200, f"{target}.texts.packed")
    report = cdd.csv.store(text.encode(), target, resume=True)
    assert (report.rows, report.appended) == (3000, 1800)
    with cdd.dataset.open(target) as ds:
        assert ds["n"][:].tolist() == list(range(3000))
        assert ds["side"].categories == ("a", "b") or list(ds["side"].categories) == ["a", "b"]
    beside = cdd.packed.open(report.beside, check="full")
    assert [row[0] for row in beside] == [f"note {i}" for i in range(3000)]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["notes", "notes.texts.packed"]
    with pytest.raises(ValueError, match="made of another"):
        cdd.csv.store(text[: text.index("1200,note")].encode(), target, resume=True)
    assert len(cdd.packed.open(report.beside)) == 3000  # what was there is as it was
    assert sorted(path.name for path in tmp_path.iterdir()) == ["notes", "notes.texts.packed"]


def run(*arguments: str, given: bytes = b"", status: int = 0) -> bytes:
    command = [sys.executable, "-P", "-m", "cdd", "csv", *arguments]
    done = subprocess.run(command, input=given, capture_output=True, check=False)
    assert done.returncode == status, done.stderr
    return done.stdout + done.stderr


def test_commands(tmp_path) -> None:
    text = b'ts,px\n1,2.5\n2,"3"\n'
    path, packed = str(tmp_path / "t.csv"), str(tmp_path / "t.packed")
    Path(path).write_bytes(text)
    run("pack", path, "-o", packed)
    plain = b"ts,px\n1,2.5\n2,3\n"
    assert run("unpack", packed) == plain
    assert run("unpack", "-", given=run("pack", "-", given=text)) == plain
    assert run("head", path, "-n", "1") == b"ts,px\n1,2.5\n"
    for file in (path, packed):
        assert run("rows", file, "1:2") == b"ts,px\n2,3\n"
        assert b"2 rows" in run("verify", file)
    run("pack", path, "--version", "1", "-o", packed, "--overwrite")
    assert cdd.packed.open(packed, header=True)[1] == ("2", "3")
    target = str(tmp_path / "s.cdd")
    assert b"2 rows appended" in run("store", path, target)
    assert run("export", target, "--no-header") == b"1,2.5\n2,3\n"
    assert b"already" in run("store", path, target, status=1)
    assert b"row 1, field 0 at 0x2" in run("verify", "-", given=b'a\n"x', status=1)
    whole = cdd.csv.pack(b"a\n" + b"x\n" * 1000, version=2)
    Path(packed).write_bytes(bytes(whole)[:-70])
    assert b"it was cut" in run("verify", packed, status=1)


@pytest.mark.skipif(shutil.which("node") is None, reason="no Node here")
def test_javascript_reads_what_is_written(tmp_path) -> None:
    text = 'a,b\n1,"é ""x""\n"\n\U0001f600,\n'.encode()
    (tmp_path / "p").write_bytes(bytes(cdd.csv.pack(text)))
    script = f"""
      const {{ PackedRows }} = require({str(ROOT / "bindings/javascript/packed_rows.js")!r});
      const bytes = require("fs").readFileSync({str(tmp_path / "p")!r});
      console.log(JSON.stringify([...new PackedRows(bytes)]));
      for (let n = 0; n < bytes.length; n++) {{
        let failed = false;
        try {{ new PackedRows(bytes.subarray(0, n)); }}
        catch (error) {{ failed = error instanceof RangeError; }}
        if (!failed) console.log("no error at", n);
      }}"""
    done = subprocess.run(["node", "-e", script], capture_output=True, check=True)
    assert done.stdout.decode() == '[["a","b"],["1","é \\"x\\"\\n"],["\U0001f600",""]]\n'


def test_no_rows(tmp_path: Path) -> None:
    for text in (b"", b"\n\n", b"\xef\xbb\xbf"):
        for target in ("d", "d.cdd"):
            with pytest.raises(ValueError, match="no row, so nothing says what columns"):
                cdd.csv.store(text, tmp_path / target)
    with pytest.raises(ValueError, match=r"no rows under the names.*'a'"):
        cdd.csv.store(b"ts,a\n", tmp_path / "d", {"ts": "epoch[ms]"}, clock="ts")
    assert not list(tmp_path.iterdir())
    types = {"ts": "epoch[ms]", "a": "float64", "b": "text"}
    report = cdd.csv.store(b"ts,a,b\n", tmp_path / "d", types, clock="ts")
    assert (report.rows, set(report.columns)) == (0, {"ts", "a", "b"})
    text = b"ts,a,b\n1,1.5,x\n2,2.5,y\n"
    assert cdd.csv.store(text, tmp_path / "d", types, clock="ts", resume=True).appended == 2
    with cdd.dataset.open(tmp_path / "d") as dataset:
        assert dataset["a"][:].tolist() == [1.5, 2.5] and dataset["ts"].dtype == "datetime64[ns]"
    cdd.csv.store(b"a,b\n", tmp_path / "n.cdd")
    with cdd.open(tmp_path / "n.cdd") as reader:
        assert reader.shape == (0, 2)
    book = cdd.csv.store(b"ts,x,y\n", tmp_path / "book", {"ts": "epoch[ms]"}, clock="ts", shape=(1, 2))
    assert book.rows == 0


def test_unknown_keywords_name_all_that_there_are(tmp_path: Path) -> None:
    with pytest.raises(TypeError, match=r"unknown keyword 'klock': there are shape, .*clock.*delimiter"):
        cdd.csv.store(b"a\n1\n", tmp_path / "d", klock="a")  # type: ignore[call-arg]
    with pytest.raises(TypeError, match=r"unknown keyword 'row': there are rows, header.*delimiter"):
        next(cdd.csv.batches(b"a\n1\n", row=3))  # type: ignore[call-arg]


def test_first_rows_of_any_length(tmp_path: Path) -> None:
    """Longer than a field of version 1, and than the window of a stream."""
    long = "x" * 70_000
    text = f"1,{long}\n2,y\n".encode()
    assert list(cdd.csv.read(text, header=False)["1"]) == [long, "y"]
    assert cdd.csv.pack(text, version="auto", columns=[1]).names == (long,)
    text = b'"' + b"n" * (9 << 20) + b'",b\n1,2\n'
    assert cdd.csv.read(text, columns=["b"])["b"].tolist() == [2]
    assert [len(c) for c in cdd.csv.batches(io.BytesIO(text))] == [1]
