"""append: what text is no row, and what is said of inputs that are not right."""

import json
from pathlib import Path

import numpy as np
import pytest

import cdd
from tests.commands.rig import fails, names_in, run, well

LARGE = 2**53 + 1  # which float64 does not hold


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "a.cdd"


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_whole_numbers_that_floats_do_not_hold(path: Path, dtype: str) -> None:
    texts = {
        "csv": (f"a,b\n1,2\n3,{LARGE}\n", f"column 'b': row 2: {dtype} does not hold 9007199254740993"),
        "jsonl": (f"[1, 2]\n[0.5, {LARGE}]\n", f"row 1, item 1: {dtype} does not hold 9007199254740993"),
    }
    for form, (text, told) in texts.items():
        how = "append", path, "--as", form, "--dtype", dtype
        found = fails(1, *how, stdin=text.encode())
        assert told in found
        assert found.endswith(": --lossy rounds it\n")
        assert not path.exists()
        well(*how, "--lossy", stdin=text.encode())
        assert cdd.load(path)[1, 1] == dtype_of(dtype)(2**53)
        path.unlink()
    for number in (2**53, 2**60, -(2**63), 10**22):
        well("append", path, "--dtype", "float64", stdin=b"a\n%d\n" % number)
        well("append", path, "--as", "jsonl", stdin=b"%d\n" % number)
        assert cdd.load(path).tolist() == [float(number)] * 2
        path.unlink()
    well(
        "append", path, stdin=b"a\n1e300\ninf\n12345678901234567.5\n"
    )  # decimals and infinity are no whole ones


def dtype_of(name: str) -> type[np.generic]:
    return np.dtype(name).type


@pytest.mark.parametrize(
    ("dtype", "null", "wanted"),
    [("float64", "nan", np.nan), ("float32", "-1.5", -1.5), ("int16", "-7", -7), ("bool", "1", True)],
)
def test_null_of_json(path: Path, dtype: str, null: str, wanted: object) -> None:
    one = "true" if dtype == "bool" else "1"
    text = f"[{one}, null]\n[null, null]\n".encode()
    told = fails(1, "append", path, "--as", "jsonl", "--dtype", dtype, stdin=text)
    assert f"row 0, item 1: null is no {dtype}: --null NUMBER takes its place" in told
    well("append", path, "--as", "jsonl", "--dtype", dtype, "--null", null, stdin=text)
    assert np.array_equal(
        cdd.load(path), np.array([[1, wanted], [wanted, wanted]], dtype), equal_nan=dtype[0] == "f"
    )


def test_null_of_json_that_the_dtype_does_not_hold(path: Path) -> None:
    told = fails(2, "append", path, "--as", "jsonl", "--dtype", "int8", "--null", "0.5", stdin=b"[1, null]\n")
    assert "int8 does not hold --null 0.5" in told


def test_true_is_no_number(path: Path) -> None:
    for line in (b"[1, true]\n", b"[[1, 2], [false, 3]]\n", b"true\n"):
        told = fails(1, "append", path, "--as", "jsonl", stdin=line)
        assert ("true is no float64" in told) or ("false is no float64" in told)
    assert not path.exists()
    well("append", path, "--as", "jsonl", "--dtype", "bool", stdin=b"[true, false]\n")


@pytest.mark.parametrize(
    ("status", "arguments", "told"),
    [
        (2, ["--shape", "1,x"], "a shape is 50,3 or none, not '1,x'"),
        (2, ["--shape", "1,,2"], "a shape is 50,3 or none, not '1,,2'"),
        (2, ["--attrs", "{bad"], "attributes are a JSON object, not '{bad': "),
        (2, ["--attrs", "[1]"], "attributes are a JSON object, not '[1]'"),
        (2, ["--threads", "x"], "a number is whole and 0 or more, not 'x'"),
        (1, ["--dtype", "int32"], '"4.5" is no int32'),
    ],
)
def test_what_was_expected_is_said(path: Path, status: int, arguments: list[str], told: str) -> None:
    assert told in fails(status, "append", path, *arguments, stdin=b"a\n4.5\n")
    assert not path.exists()


def test_columns_that_are_not_there(path: Path) -> None:
    assert "'zz'" in fails(2, "append", path, "--columns", "zz", stdin=b"a\n4.5\n")
    assert not path.exists()


def test_arrow_is_held_or_refused(path: Path) -> None:
    pa = pytest.importorskip("pyarrow")

    def stream(values: list[object], kind: object) -> bytes:
        table = pa.table({"a": pa.array(values, kind)})
        out = pa.BufferOutputStream()
        with pa.ipc.new_stream(out, table.schema) as writer:
            writer.write_table(table)
        return out.getvalue().to_pybytes()

    how = "append", path, "--as", "arrow", "--dtype"
    told = fails(1, *how, "float64", stdin=stream([1, LARGE], pa.int64()))
    assert "row 1, column 'a': float64 does not hold 9007199254740993: --lossy rounds it" in told
    assert "int64 does not hold nan" in fails(1, *how, "int64", stdin=stream([1.0, np.nan], pa.float64()))
    assert "int64 does not hold 18446744073709551615" in fails(
        1, *how, "int64", stdin=stream([2**64 - 1], pa.uint64())
    )
    assert "row 1, column 'a' is null: --null" in fails(1, *how, "int8", stdin=stream([1, None], pa.int64()))
    assert "does not hold --null 300" in fails(
        2, *how, "int8", "--null", "300", stdin=stream([1, None], pa.int64())
    )
    assert not path.exists()
    well(*how, "float64", "--lossy", stdin=stream([LARGE], pa.int64()))
    well(*how, "float64", "--null", "nan", stdin=stream([3, None], pa.int64()))
    assert np.array_equal(cdd.load(path), [2.0**53, 3, np.nan], equal_nan=True)


def test_inputs_that_are_something_else(tmp_path: Path, path: Path) -> None:
    (tmp_path / "t.npz").write_bytes(b"hello")
    assert fails(1, "append", path, tmp_path / "t.npz").endswith("t.npz is no npz file\n")
    np.save(tmp_path / "a.npy", np.ones(3))
    (tmp_path / "a.npy").rename(tmp_path / "a.npz")
    assert "it is a npy file: --as npy" in fails(1, "append", path, tmp_path / "a.npz")
    np.savez(tmp_path / "o.npz", np.array([{}]))
    assert "o.npz holds Python objects" in fails(1, "append", path, tmp_path / "o.npz")
    told = fails(1, "append", path, "--as", "jsonl", stdin=b'{"a": 1}\n')
    assert 'row 0 is an object without "values": {"a": 1}' in told
    np.save(tmp_path / "s.npy", np.array(["a", "b"]))
    assert "dtype <U1 cannot be stored" in fails(1, "append", path, tmp_path / "s.npy")
    (tmp_path / "d.jsonl").write_bytes(b"[[1, 2], [3, 4]]\n")
    assert "not (4,)" in fails(1, "append", path, tmp_path / "d.jsonl", "--shape", "4")
    assert not path.exists()


def test_nothing_makes_no_store_and_names_an_empty_one(tmp_path: Path, path: Path) -> None:
    told = well("append", path, stdin=b"").decode()
    assert told == f"{path}: no rows came, so there is no store\n"
    assert names_in(tmp_path) == []
    for number, way in enumerate(("pipe", "file")):
        store = tmp_path / f"{way}.cdd"
        (tmp_path / "n.csv").write_bytes(b"a,b\n")
        given = ["-"] if way == "pipe" else [tmp_path / "n.csv"]
        told = well("append", store, *given, stdin=b"a,b\n").decode()
        assert (number, told) == (number, f"{store}: 0 rows added, 0 in all\n")
        assert cdd.load(store).shape == (0, 2)


def test_what_was_added_before_an_error_is_said(tmp_path: Path, path: Path) -> None:
    (tmp_path / "good.csv").write_bytes(b"a\n1\n2\n")
    (tmp_path / "bad.csv").write_bytes(b"a\n1\nx\n")
    lines = fails(1, "append", path, tmp_path / "good.csv", tmp_path / "bad.csv").splitlines()
    assert '"x" is no float64' in lines[0]
    assert lines[1:] == [f"{path}: 2 rows were added before that"]


def test_diff_tells_both_lengths(tmp_path: Path, path: Path) -> None:
    cdd.save(path, np.arange(4.0))
    cdd.save(tmp_path / "b.cdd", np.array([0.0, 9.0]))
    done = json.loads(run_diff(path, tmp_path / "b.cdd"))
    assert done["what"] == "4 and 2 rows, 1 of the 2 that both have, the first is row 1: 1.0 and 9.0"


def run_diff(one: Path, other: Path) -> bytes:
    done = run("diff", one, other, "--json")
    assert done.returncode == 1
    return done.stdout


def test_chunks_of_a_column_say_where_they_are(tmp_path: Path) -> None:
    with cdd.dataset.open(tmp_path / "ds", "w") as writer:
        writer.append({"a": np.arange(4.0)})
    assert "whose rows are in superchunks" in fails(2, "chunks", tmp_path / "ds" / "a")


def test_damage_tells_of_repair_whatever_reads_it(tmp_path: Path) -> None:
    store = tmp_path / "a.cdd"
    cdd.save(store, np.random.default_rng(1).random((4000, 8)))
    whole = bytearray(store.read_bytes())
    whole[len(whole) // 2] ^= 0xFF
    store.write_bytes(whole)
    for command in ("read", "stats"):
        assert "python -m cdd repair" in fails(1, command, store).splitlines()[-1]
