"""Where output goes, and what commands say when their arguments, files or streams are not right."""

import gzip
import os
import subprocess
from pathlib import Path

import numpy as np
import pytest

import cdd
from tests.commands.rig import HERE, fails, names_in, run, same_bits, well

BOOK = np.arange(900, dtype=np.float32).reshape(6, 50, 3)
POSIX = pytest.mark.skipif(os.name == "nt", reason="POSIX's devices, links and shells")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    cdd.save(tmp_path / "b.cdd", BOOK)
    return tmp_path / "b.cdd"


def shell(line: str, folder: Path) -> "subprocess.CompletedProcess[bytes]":
    command = " ".join(HERE)
    return subprocess.run(["sh", "-c", line.replace("CDD", command)], cwd=folder, capture_output=True)


# ---------------------------------------------------------------- where output goes


@POSIX
def test_pipes_and_devices_stay_what_they_are(tmp_path: Path, path: Path) -> None:
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    for form in ([], ["--overwrite"]):
        done = shell(f"cat fifo > got & CDD read b.cdd 0:2 --as raw -o fifo {' '.join(form)}; wait", tmp_path)
        assert (done.returncode, done.stderr, fifo.is_fifo()) == (0, b"", True)
        assert (tmp_path / "got").read_bytes() == BOOK[:2].tobytes()
    assert not shell("CDD read b.cdd -o /dev/null", tmp_path).stderr
    done = shell("CDD read b.cdd 0:1 --as raw -o /dev/stdout | cat", tmp_path)
    assert (done.stdout, done.stderr) == (BOOK[:1].tobytes(), b"")


@POSIX
@pytest.mark.parametrize("is_there", [True, False])
def test_links_stay(tmp_path: Path, path: Path, is_there: bool) -> None:
    link, file = tmp_path / "link.npy", tmp_path / "file.npy"
    link.symlink_to(file.name)
    if is_there:
        file.write_bytes(b"old")
    well("read", path, "-o", link, *["--overwrite"] * is_there)
    assert link.is_symlink()
    assert same_bits(np.load(file), BOOK)


def test_what_is_read_is_not_replaced(tmp_path: Path, path: Path) -> None:
    before = path.read_bytes()
    for name in (path, tmp_path / "." / path.name):
        assert "is what is read" in fails(2, "read", path, "0:1", "--as", "csv", "-o", name, "--overwrite")
    cdd.save(tmp_path / "t.cdd", np.arange(6))
    times = "--from", "2", "--time", tmp_path / "t.cdd", "--as", "csv"
    fails(2, "read", path, *times, "-o", tmp_path / "t.cdd", "--overwrite")
    fails(2, "tail", path, "-f", "--as", "raw", "-o", path, "--overwrite")
    os.link(path, tmp_path / "hard.raw")
    fails(2, "read", path, "-o", tmp_path / "hard.raw", "--overwrite")
    assert path.read_bytes() == before
    with cdd.dataset.open(tmp_path / "ds", "w") as writer:
        writer.append({"a": np.arange(4.0)})
    inside = tmp_path / "ds" / "meta" / "dataset.json"
    assert "part of it" in fails(2, "read", tmp_path / "ds" / "a", "--as", "csv", "-o", inside, "--overwrite")
    assert "part of it" in fails(2, "csv", "export", tmp_path / "ds", "-o", inside, "--overwrite")
    assert cdd.dataset.open(tmp_path / "ds")["a"][:].tolist() == [0, 1, 2, 3]


@pytest.mark.parametrize("name", ["x.npz", "x.parquet", "x.feather", "x.cdd", "x.parquet.gz"])
def test_names_of_other_formats_are_refused(tmp_path: Path, path: Path, name: str) -> None:
    assert "is not written, csv, jsonl, npy" in fails(2, "read", path, "-o", tmp_path / name)
    assert names_in(tmp_path) == ["b.cdd"]
    well("read", path, "-o", tmp_path / "x.bin")
    assert (tmp_path / "x.bin").read_bytes() == BOOK.tobytes()


@pytest.mark.parametrize("form", ["csv", "jsonl", "npy", "raw"])
def test_what_is_compressed_comes_back(tmp_path: Path, path: Path, form: str) -> None:
    text, back = tmp_path / f"x.{form}.gz", tmp_path / "back.cdd"
    well("read", path, "-o", text)
    assert gzip.decompress(text.read_bytes()) == well("read", path, "--as", form)
    well("append", back, text, "--shape", "50,3", "--dtype", "float32")
    assert same_bits(cdd.load(back), BOOK)
    assert ".zst is read and not written" in fails(2, "read", path, "-o", tmp_path / f"x.{form}.zst")


def test_one_form_is_asked_for(path: Path) -> None:
    assert "not allowed with" in fails(2, "read", path, "--json", "--as", "csv")


# ---------------------------------------------------------------- which rows, levels and features


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["--levels", "5:2"], "--levels 5:2 picks none of 50"),
        (["--levels", "0:0"], "--levels 0:0 picks none of 50"),
        (["--features", "3:"], "--features 3: picks none of 3"),
        (["--levels", "99"], "index 99 is not one of 50 levels"),
        (["--features", "0,3"], "index 3 is not one of 3 features"),
        (["6"], "row 6 is none of 6 rows"),
        (["-7"], "row -7 is none of 6 rows"),
        (["::0"], "a step of 1 or more"),
    ],
)
@pytest.mark.parametrize("form", ["csv", "jsonl", "npy"])
def test_what_is_not_there_is_an_argument_error(
    path: Path, arguments: list[str], told: str, form: str
) -> None:
    assert told in fails(2, "read", path, *arguments, "--as", form)


def test_single_rows_are_those_of_python(path: Path) -> None:
    for number in (0, 5, -1, -6):
        assert well("read", path, number, "--as", "raw") == BOOK[number].tobytes()
    assert well("read", path, "20:30", "--as", "raw") == b""  # as a slice


# ---------------------------------------------------------------- which file an error is of


def test_errors_name_the_file_they_are_of(tmp_path: Path, path: Path) -> None:
    none = tmp_path / "none.cdd"
    for json in ([], ["--json"]):
        assert fails(2, "diff", path, none, *json).startswith(f"{none}: ")
        assert fails(2, "diff", none, path, *json).startswith(f"{none}: ")
    damaged = tmp_path / "damaged.cdd"
    whole = bytearray(path.read_bytes())
    whole[200] ^= 0xFF
    damaged.write_bytes(whole)
    assert fails(2, "diff", path, damaged).startswith(f"{damaged}: ")
    assert fails(1, "append", path, tmp_path / "none.csv").startswith(f"{tmp_path / 'none.csv'}: ")
    text = fails(1, "read", path, "-o", tmp_path / "no" / "x.csv")
    assert text == f"{tmp_path / 'no'}: there is no such folder\n"
    (tmp_path / "x.csv.gz").write_bytes(b"a,b\n1,2\n")
    text = fails(1, "append", tmp_path / "new.cdd", tmp_path / "x.csv.gz")
    assert "x.csv.gz" in text
    assert "standard output" not in text


# ---------------------------------------------------------------- closed streams


@POSIX
def test_closed_streams_are_no_tracebacks(tmp_path: Path, path: Path) -> None:
    del path
    (tmp_path / "a.csv").write_bytes(b"a\n1\n")
    done = shell("CDD read b.cdd 0:2 >&-", tmp_path)
    assert (done.returncode, done.stderr) == (1, b"standard output: is closed\n")
    done = shell("CDD info b.cdd >&-", tmp_path)
    assert (done.returncode, done.stderr) == (1, b"standard output: is closed\n")
    done = shell("CDD append z.cdd <&-", tmp_path)
    assert (done.returncode, done.stderr) == (1, b"standard input: is closed\n")
    done = shell("CDD append z.cdd a.csv 2>&-", tmp_path)
    assert (done.returncode, done.stdout) == (0, b"z.cdd: 1 rows added, 1 in all\n")
    if Path("/dev/full").exists():
        done = shell("CDD append z.cdd a.csv > /dev/full", tmp_path)
        text = b"standard output: No space left on device\nz.cdd: 1 rows were added, 2 in all\n"
        assert (done.returncode, done.stderr) == (1, text)
    assert cdd.load(tmp_path / "z.cdd").tolist() == [1, 1][: len(cdd.load(tmp_path / "z.cdd"))]
    assert run("verify", tmp_path / "z.cdd").returncode == 0
