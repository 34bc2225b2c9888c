"""append: text and bytes into stores, whole or not at all."""

import gzip
import json
from pathlib import Path

import numpy as np
import pytest

import cdd
import cdd.csv
import cdd.dataset
from cdd.commands import text_rows
from tests.commands.rig import books, fails, names_in, run, same_bits, well

BOOKS = books()
SAFE = np.nan_to_num(BOOKS, nan=1.5)  # text has one NaN, float32 has many
SHAPE = "--shape", "50,3", "--dtype", "float32"


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "a.cdd"


def write(path: Path, text: str) -> Path:
    path.write_bytes(text.encode())
    return path


# ---------------------------------------------------------------- there and back


@pytest.mark.parametrize("form", ["csv", "jsonl", "npy", "raw", "arrow"])
@pytest.mark.parametrize("way", ["file", "pipe"])
def test_forms_come_back(tmp_path: Path, path: Path, form: str, way: str) -> None:
    if form == "arrow":
        pytest.importorskip("pyarrow")
    # by way of JSON's float64 one float32, and its negative, cannot be told from its neighbour
    array = SAFE if form != "jsonl" else np.where(np.abs(SAFE) == np.float32(7.038531e-26), 1, SAFE)
    cdd.save(path, array.astype(np.float32))
    text = well("read", path, "--as", form)
    back = tmp_path / "back.cdd"
    if way == "pipe":
        told = well("append", back, "--as", form, *SHAPE, stdin=text)
    else:
        (tmp_path / f"in.{form}").write_bytes(text)
        told = well("append", back, tmp_path / f"in.{form}", *SHAPE)
    assert told.decode() == f"{back}: 500 rows added, 500 in all\n"
    assert same_bits(cdd.load(back), cdd.load(path))
    assert well("diff", path, back).decode().endswith("are the same: 500 rows\n")


@pytest.mark.parametrize("form", ["csv", "jsonl", "raw", "npy"])
def test_recorded_books_come_back(data_dir: Path, tmp_path: Path, form: str) -> None:
    """Every recorded book, bit for bit."""
    for name in json.loads((data_dir / "index.json").read_text())["lob"]:
        with np.load(data_dir / "lob" / f"{name}.npz") as archive:
            book = archive["ob"]
        cdd.save(tmp_path / "a.cdd", book)
        text = tmp_path / f"a.{form}"
        well("read", tmp_path / "a.cdd", "-o", text, "--overwrite")
        (tmp_path / "b.cdd").unlink(missing_ok=True)
        shape = ",".join(map(str, book.shape[1:]))
        well("append", tmp_path / "b.cdd", text, "--shape", shape, "--dtype", book.dtype)
        assert same_bits(cdd.load(tmp_path / "b.cdd"), book), name
        assert run("diff", tmp_path / "a.cdd", tmp_path / "b.cdd").returncode == 0


def test_recorded_series_come_back(data_dir: Path, tmp_path: Path) -> None:
    for name in json.loads((data_dir / "index.json").read_text())["series"]:
        with np.load(data_dir / "series" / f"{name}.npz") as archive:
            series = archive[archive.files[0]]
        cdd.save(tmp_path / "a.cdd", series)
        text = well("read", tmp_path / "a.cdd")
        (tmp_path / "b.cdd").unlink(missing_ok=True)
        shape = ",".join(map(str, series.shape[1:])) or "none"
        well("append", tmp_path / "b.cdd", "--dtype", series.dtype, "--shape", shape, stdin=text)
        assert same_bits(cdd.load(tmp_path / "b.cdd"), series), name


@pytest.mark.parametrize(
    "dtype",
    ["bool", "int8", "uint16", "int64", "uint64", "float16", "float32", "float64", "datetime64[us]",
     "timedelta64[ms]"],
)  # fmt: skip
@pytest.mark.parametrize("form", ["csv", "jsonl"])
def test_every_bit_of_every_dtype(tmp_path: Path, dtype: str, form: str) -> None:
    kind = np.dtype(dtype)
    rng = np.random.default_rng(5)
    bits = rng.integers(0, 256, 8000 * kind.itemsize, np.uint8)
    array = (bits % 2).view(kind) if kind.kind == "b" else bits.view(kind)
    if kind.kind == "f":
        array = array[array == array]
    if kind.kind == "M":
        array = (array.astype(np.int64) % (1 << 60) // 1000).astype(kind)
        array[5] = "NaT"
    cdd.save(tmp_path / "a.cdd", array)
    text = well("read", tmp_path / "a.cdd", "--as", form)
    well("append", tmp_path / "b.cdd", "--as", form, "--dtype", dtype, stdin=text)
    assert same_bits(cdd.load(tmp_path / "b.cdd"), array)


def test_the_one_float32_that_its_text_alone_tells(tmp_path: Path) -> None:
    """7.038531e-26 lies halfway between two float32 once it is a float64."""
    for text in ("7.038531e-26", "-7.038531e-26"):
        wanted = np.frombuffer(np.uint32(0x15AE43FD | (text[0] == "-") << 31).tobytes(), np.float32)
        assert str(wanted[0]) == text
        for lossy in (False, True):
            found, lost = text_rows.as_items(np.array([float(text)]), np.dtype(np.float32), lossy)
            assert found.tobytes() == wanted.tobytes()
            assert not len(lost)
        write(tmp_path / "a.csv", f"x,y\n{text},1\n")
        cdd.csv.store(tmp_path / "a.csv", tmp_path / "a.cdd", shape=(2,), overwrite=True)
        assert cdd.load(tmp_path / "a.cdd")[0, :1].tobytes() == wanted.tobytes()


def test_numbers_beyond_float32_are_told(tmp_path: Path) -> None:
    write(tmp_path / "a.csv", "x\n1e39\n")
    with pytest.raises(ValueError, match="does not hold"):
        cdd.csv.store(tmp_path / "a.csv", tmp_path / "a.cdd", shape=(1,))


# ---------------------------------------------------------------- inputs


def test_several_inputs(tmp_path: Path, path: Path) -> None:
    np.save(tmp_path / "1.npy", BOOKS[:100])
    np.save(tmp_path / "2.npy", np.asfortranarray(BOOKS[100:200]))
    np.save(tmp_path / "3.npy", BOOKS[200:250].astype(">f4"))
    np.savez(tmp_path / "4.npz", books=BOOKS[250:300])
    np.savez(tmp_path / "5.npz", one=BOOKS[300:350], other=BOOKS[:1])
    cdd.save(tmp_path / "6.cdd", BOOKS[350:])
    assert "--array names one of one, other" in fails(2, "append", path, tmp_path / "5.npz")
    several = [tmp_path / name for name in ("1.npy", "2.npy", "3.npy", "4.npz")]
    well("append", path, *several)
    well("append", path, tmp_path / "5.npz", "--array", "one", "-q")
    told = well("append", path, tmp_path / "6.cdd", "--json")
    assert json.loads(told) == {"file": str(path), "appended": 150, "rows": 500}
    assert same_bits(cdd.load(path), BOOKS)
    pipe = well("read", path, "--as", "npy")
    well("append", tmp_path / "b.cdd", "--as", "npy", stdin=pipe)
    assert same_bits(cdd.load(tmp_path / "b.cdd"), BOOKS)


def test_csv_makes_a_store_of_float64(tmp_path: Path, path: Path) -> None:
    text = "bid;ask;n\n0.1;0.2;3\n\n1e3;-0;4\n"
    (tmp_path / "a.csv.gz").write_bytes(gzip.compress(text.encode()))
    well("append", path, tmp_path / "a.csv.gz", "--delimiter", ";", "--columns", "ask,bid")
    assert same_bits(cdd.load(path), np.array([[0.2, 0.1], [-0.0, 1000]]))
    well("append", tmp_path / "one.cdd", "--no-header", stdin=b"1\n2.5\n")
    assert same_bits(cdd.load(tmp_path / "one.cdd"), np.array([1, 2.5]))


def test_options_of_the_store(tmp_path: Path, path: Path) -> None:
    np.save(tmp_path / "a.npy", BOOKS)
    how = "--codec", "zstd", "--chunk-rows", "100", "--attrs", '{"symbol": "BTC"}'
    well("append", path, tmp_path / "a.npy", "--create-only", *how)
    with cdd.open(path) as reader:
        assert reader.attrs == {"symbol": "BTC"}
        assert [chunk.stop - chunk.start for chunk in reader.chunk_infos] == [100] * 5
        assert {chunk.codec.split("+")[0] for chunk in reader.chunk_infos} == {"zstd"}
    assert "--create-only" in fails(1, "append", path, tmp_path / "a.npy", "--create-only")
    assert len(cdd.load(path)) == 500


def test_rows_of_an_empty_store(path: Path) -> None:
    cdd.open(path, "w").close()
    well("append", path, stdin=b"a\n1\n")
    assert len(cdd.load(path)) == 1
    assert well("append", path, stdin=b"").decode() == f"{path}: 0 rows added, 1 in all\n"


# ---------------------------------------------------------------- what is wrong


@pytest.mark.parametrize(
    ("dtype", "text", "told"),
    [
        ("float64", "a,b\n1,2\n3,abc\n", "column 'b': row 2, field 1 at 0xa: \"abc\" is no float64"),
        ("float64", "a,b\n1,2\n,4\n", "column 'a': row 2: the field is empty"),
        ("float64", "a,b\n1,2\n3\n", "row 2 at 0x8 has 1 fields"),
        ("float32", "a,b\n0.1,123456.789\n", "column 'b': row 1: float32 does not hold 123456.789: --lossy"),
        ("float32", "a,b\n0.1,1e39\n", "column 'b': row 1: float32 does not hold 1e+39"),
        ("float16", "a,b\n0.1,2049\n", "column 'b': row 1: float16 does not hold 2049.0"),
        ("int8", "a,b\n1,2\n-128,128\n", "column 'b': row 2: int8 does not hold 128"),
        ("int64", "a,b\n1,2.5\n", "column 'b': row 1, field 1 at 0x6: \"2.5\" is no int64"),
        ("uint8", "a,b\n1,-2\n", "column 'b': row 1, field 1 at 0x6: \"-2\" is no uint8"),
        ("bool", "a,b\ntrue,2\n", "column 'b': row 1, field 1 at 0x9: \"2\" is no bool"),
        ("datetime64[s]", "a,b\n2024-01-01,2024-01-01T00:00:00.5\n", "row 1: datetime64[s] does not hold"),
        ("datetime64[s]", "a,b\n2024-01-01,soon\n", "row 1, field 1 at 0xf: \"soon\" is no datetime64"),
        ("float64", "1,2\n3,4\n", "--no-header takes it as a row"),
        ("float64", "a,b,c\n1,2,3\n", "3 columns, rows of shape (2,) have 2 items"),
        ("float64", 'a,b\n"1,2\n', "a quote that opens here is never closed"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("there", [False, True])
def test_text_that_is_no_row(
    tmp_path: Path, path: Path, dtype: str, text: str, told: str, there: bool
) -> None:
    before = b""
    if there:
        cdd.open(path, "w", dtype=dtype, row_shape=(2,)).close()
        before = path.read_bytes()
    source = write(tmp_path / "in.csv", text)
    error = fails(1, "append", path, source, "--dtype", dtype, "--shape", "2")
    assert told in error
    assert str(source) in error
    assert names_in(tmp_path) == ["a.cdd", "in.csv"][not there :]
    assert (path.read_bytes() if there else b"") == before


@pytest.mark.parametrize(
    ("dtype", "text", "told"),
    [
        ("float64", "[1, 2]\n[3, \"abc\"]\n", 'row 1, item 1: "abc" is no float64'),
        ("float64", "[1, 2]\n[3, null]\n", "row 1, item 1: null is no float64"),
        ("float64", "[1, 2]\n[3, true, 4]\n", "row 1"),
        ("float64", "[1, 2]\n[3, 4, 5]\n", "row 1 is no array of shape (2,): [3, 4, 5]"),
        ("float64", "[1, 2]\n3, 4\n", "row 1 is no JSON array"),
        ("float64", "[1, 2]\n[[3], [4]]\n", "row 1"),
        ("float64", "[1, 2]\n{\"row\": 3}\n", 'row 1 is an object without "values"'),
        ("float64", "hello\n", "row 0 is no JSON array of numbers"),
        ("int64", "[1, 2]\n[3, 4.5]\n", "row 1, item 1: 4.5 is no int64"),
        ("int64", "[1, 9223372036854775808]\n", "row 0, item 1: 9223372036854775808 is no int64"),
        ("uint8", "[1, 256]\n", "row 0, item 1: uint8 does not hold 256"),
        ("uint8", "[1, -1]\n", "row 0, item 1: -1 is no uint8"),
        ("bool", "[true, 1]\n", "row 0, item 1: 1 is no bool"),
        ("float32", "[1, 0.123456789]\n", "row 0, item 1: float32 does not hold 0.123456789"),
    ],
)  # fmt: skip
def test_lines_that_are_no_rows(tmp_path: Path, path: Path, dtype: str, text: str, told: str) -> None:
    error = fails(1, "append", path, write(tmp_path / "in.jsonl", text), "--dtype", dtype, "--shape", "2")
    assert told in error
    assert not path.exists()


def test_rounding_when_asked(tmp_path: Path, path: Path) -> None:
    source = write(tmp_path / "in.csv", "a,b\n0.123456789,\n")
    well("append", path, source, "--dtype", "float32", "--lossy", "--null", "nan")
    found = cdd.load(path)
    assert found[0, 0] == np.float32(0.123456789)
    assert np.isnan(found[0, 1])


def test_an_input_is_added_whole_or_not_at_all(tmp_path: Path, path: Path) -> None:
    lines = ["x,y", *(f"{i},{i / 2}" for i in range(400_000)), "1,oops"]
    good, bad = write(tmp_path / "good.csv", "x,y\n1,2\n"), write(tmp_path / "bad.csv", "\n".join(lines))
    assert "column 'y': row 400001, field 1" in fails(1, "append", path, good, bad, good)
    assert same_bits(cdd.load(path), np.array([[1.0, 2.0]]))  # what came before the bad one
    np.save(tmp_path / "a.npy", np.ones((1000, 2)))
    cut = tmp_path / "a.npy"
    cut.write_bytes(cut.read_bytes()[:-100])
    assert "ends within row 993" in fails(1, "append", path, cut)
    assert len(cdd.load(path)) == 1


def test_inputs_that_are_not_what_they_say(tmp_path: Path, path: Path) -> None:
    cdd.save(path, np.ones((3, 2)))
    np.save(tmp_path / "a.npy", np.ones((4, 2), np.float32))
    assert "rows of float32" in fails(1, "append", path, tmp_path / "a.npy")
    np.save(tmp_path / "b.npy", np.ones((4, 3)))
    assert "rows of shape (3,)" in fails(1, "append", path, tmp_path / "b.npy")
    np.save(tmp_path / "c.npy", np.float64(3))
    assert "scalar" in fails(1, "append", path, tmp_path / "c.npy")
    np.save(tmp_path / "d.npy", np.array([{}]))
    assert "Python objects" in fails(1, "append", path, tmp_path / "d.npy")
    write(tmp_path / "e.npy", "no npy at all")
    assert "is no npy file" in fails(1, "append", path, tmp_path / "e.npy")
    assert "--as says what it is" in fails(2, "append", path, write(tmp_path / "f.txt", "1"))
    assert "--dtype float32 is none" in fails(2, "append", path, tmp_path / "b.npy", "--dtype", "float32")
    assert "No such file" in fails(1, "append", path, tmp_path / "none.npy")
    assert "--dtype and --shape" in fails(2, "append", tmp_path / "new.cdd", "--as", "raw", stdin=b"1234")
    assert "read once" in fails(2, "append", path, "-", "-")
    assert "Is a directory" in fails(1, "append", path, tmp_path, "--as", "npy")
    assert len(cdd.load(path)) == 3


def test_a_store_with_another_writer(tmp_path: Path, path: Path) -> None:
    np.save(tmp_path / "a.npy", BOOKS)
    with cdd.open(path, "w") as w:
        w.append(BOOKS)
        assert "another writer" in fails(1, "append", path, tmp_path / "a.npy")


def test_a_dataset_is_refused(tmp_path: Path) -> None:
    with cdd.dataset.open(tmp_path / "day", "w") as w:
        w.append(price=np.ones(3))
    for name in ("day", "day/price", "day/data/price/__0__.cdd"):
        assert "dataset" in fails(2, "append", tmp_path / name, stdin=b"1\n")


@pytest.mark.parametrize(
    ("dtype", "null"),
    [("int32", "nan"), ("int64", "1.5"), ("uint8", "-1"), ("uint8", "300"), ("int16", "1e9")],
)
def test_what_stands_for_empty_fields_is_held_by_the_dtype(
    tmp_path: Path, path: Path, dtype: str, null: str
) -> None:
    source = write(tmp_path / "in.csv", "a,b\n1,\n")
    assert f"{dtype} does not hold" in fails(1, "append", path, source, "--dtype", dtype, f"--null={null}")
    assert not path.exists()
