"""Errors of CSV: which file they are of, what was wanted, and how the command line says it."""

import gzip
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
import cdd.dataset
import cdd.packed
from cdd.commands.csv_text import in_words_of_options
from cdd.packed.reading import check_row_bytes


def run(*arguments: Any, given: bytes = b"", status: int = 0, program: tuple[str, ...] = ("csv",)) -> str:
    command = [sys.executable, "-P", "-m", "cdd", *program, *map(str, arguments)]
    done = subprocess.run(command, input=given, capture_output=True, check=False)
    assert done.returncode == status, done.stderr
    return (done.stdout + done.stderr).decode()


def every(source: Any, folder: Path, **options: Any) -> Any:
    """Each way to read a text, as functions."""
    return [
        lambda: cdd.csv.pack(source, **options),
        lambda: cdd.csv.pack(source, version=2, **options),
        lambda: cdd.csv.read(source, **options),
        lambda: list(cdd.csv.batches(source, **options)),
        lambda: cdd.csv.store(source, folder / "made", **options),
    ]


def test_errors_name_the_file(tmp_path: Path) -> None:
    path = tmp_path / "trades.csv"
    path.write_bytes(b"a,b\n1,2\n3\n")
    for read in every(path, tmp_path):
        with pytest.raises(cdd.FormatError, match=r"trades\.csv: row 2 at 0x8 has 1 fields") as caught:
            read()
        assert (caught.value.row, caught.value.field, caught.value.offset) == (2, 1, 8)
    path.write_bytes(b'a,b\n1,"2\n')
    with pytest.raises(cdd.FormatError, match=r"trades\.csv: "):
        cdd.csv.count(path)


def test_what_is_no_source(tmp_path: Path) -> None:
    for source in (None, 5, [b"a"]):
        for read in every(source, tmp_path):
            with pytest.raises(
                TypeError, match="read from a path, bytes or another buffer, or a file object"
            ):
                read()


@pytest.mark.parametrize("end", [b"\n", b"\r\n", b"\r"])
def test_rows_of_more_bytes_than_max_row_bytes(tmp_path: Path, end: bytes) -> None:
    def text(bytes_of_row: int, rows_before: int) -> bytes:
        rows = [b"a,b", *[b"1,2"] * rows_before, b"x" * (bytes_of_row - 2) + b",2", b"3,4"]
        return end.join(rows) + end

    for most in (10, 60_000):
        for before in (0, 30_000):
            good, bad = text(most, before), text(most + 1, before)
            offset = bad.index(b"x")
            for read in every(good, tmp_path, max_row_bytes=most):
                read()
            for source in (bad, io.BytesIO(bad)):
                for read in every(source, tmp_path / "no", max_row_bytes=most):
                    if source is not bad:
                        source.seek(0)
                    words = f"at 0x{offset:x} has more than {most:,} bytes"
                    with pytest.raises(cdd.LimitError, match=words) as caught:
                        read()
                    assert caught.value.offset == offset
            shutil.rmtree(tmp_path / "made")


def test_row_bytes_of_any_text() -> None:
    rng = np.random.default_rng(5)
    for _ in range(300):
        lengths = rng.integers(0, 60, rng.integers(0, 30))
        ends = [[b"\n", b"\r", b"\r\n"][i] for i in rng.integers(0, 3, len(lengths))]
        text = b"".join(b"x" * n + end for n, end in zip(lengths, ends, strict=True)) + b"x" * int(
            rng.integers(0, 60)
        )
        longest = max(len(row) for row in text.replace(b"\r", b"\n").split(b"\n"))
        check_row_bytes(text, max(longest, 1))
        if longest > 1:
            with pytest.raises(cdd.LimitError):
                check_row_bytes(text, longest - 1)


def test_text_that_is_no_utf8() -> None:
    c = cdd.csv.read(b"a,b\n1,x\n2,\xff\n", encoding="bytes")
    assert repr(c["b"]) == r"<cdd.packed.Text of 2: 'x', '\\xff'>"
    assert c["b"].bytes(1) == b"\xff" and c["b"].numpy("S").tolist() == [b"x", b"\xff"]
    for use in (lambda: list(c["b"]), lambda: c["b"][1], lambda: c["b"].numpy()):
        with pytest.raises(UnicodeDecodeError, match=r"text 1 is no UTF-8, bytes\(1\) gives it"):
            use()


def test_words_of_errors() -> None:
    with pytest.raises(ValueError, match=r"filled\('a', value\) gives the column"):
        cdd.csv.read(b"a,b\n1,2\n,3\n").to()
    assert cdd.packed.Columns is type(cdd.csv.read(b"a\n1\n"))
    for text, words in (
        ("null={'a': value} says", "--null a=NUMBER says"),
        ('sort=True sorts, order="any" takes', "--sort sorts, --any-order takes"),
        ("types={'b': \"float64\"} names", "--type b=float64 names"),
        ('dtype="float64" holds, lossy=True rounds', "--dtype float64 holds, --lossy rounds"),
        ("overwrite=True or resume=True", "--overwrite or --resume"),
        ('(encoding="bytes" takes it)', "(--encoding bytes takes it)"),
        ("columns= picks them", "--columns picks them"),
    ):
        assert in_words_of_options(text) == words


def test_commands_speak_of_their_options(tmp_path: Path) -> None:
    path, target = tmp_path / "t.csv", tmp_path / "d"
    path.write_bytes(b"t,a\n2,\n1,3\n")
    assert "--null a=NUMBER says" in run("store", path, target, status=1)
    assert "--sort sorts, --any-order takes" in run(
        "store", path, target, "--clock", "t", "--null", "0", status=1
    )
    assert "--null is NUMBER or COLUMN=NUMBER, not 'a=x'" in run(
        "store", path, target, "--null", "a=x", status=2
    )
    assert "null has 'b'" in run("store", path, target, "--null", "b=1", status=1)
    run("store", path, target, "--null", "a=7", "--clock", "t", "--sort")
    with cdd.dataset.open(target) as ds:
        assert ds["a"][:].tolist() == [3, 7]
    for text in (
        run("store", path, target, status=1),
        run("store", path, tmp_path / "e", "--any-order", status=1),
    ):
        assert "True" not in text and '="' not in text


def test_export_gives_back_what_was_stored(tmp_path: Path) -> None:
    text = b'Open time,side,px (USD)\n1,buy,1.5\n2,"a,b",2.5\n'
    path, target, out = tmp_path / "t.csv", tmp_path / "d", tmp_path / "o.csv"
    path.write_bytes(text)
    run("store", path, target, "--clock", "Open time")
    assert run("export", target).encode() == text
    assert run("export", target, "--columns", "px (USD),side", "--rows", "1:") == 'px (USD),side\n2.5,"a,b"\n'
    run("export", target, "-o", out)
    assert out.read_bytes() == text
    assert "already" in run("export", target, "-o", out, status=1)
    run("export", target, "-o", out, "--overwrite", "--rows", "0:1")
    assert out.read_bytes() == text[: text.index(b"2,")]
    run("export", target, "-o", tmp_path / "o.csv.gz")
    assert gzip.decompress((tmp_path / "o.csv.gz").read_bytes()) == text
    book = b"t,bid px,bid qty\n1,1.5,2\n2,2.5,3\n"
    path.write_bytes(book)
    run("store", path, tmp_path / "book", "--clock", "t", "--shape", "1,2")
    assert run("export", tmp_path / "book").encode() == book
    run("store", path, tmp_path / "s.cdd", "--columns", "bid px,bid qty", "--shape", "1,2")
    assert run("export", tmp_path / "s.cdd") == "l0_f0,l0_f1\n1.5,2\n2.5,3\n"
    assert run(tmp_path / "s.cdd", program=("read",)) == run("export", tmp_path / "s.cdd")


def test_outputs_are_not_replaced_without_being_asked(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_bytes(b"a\n1\n")
    for command, source in (("pack", path), ("unpack", tmp_path / "p")):
        out = tmp_path / ("p" if command == "pack" else "u.csv")
        run(command, source, "-o", out)
        before = out.read_bytes()
        assert "already" in run(command, source, "-o", out, status=1)
        assert out.read_bytes() == before
        run(command, source, "-o", out, "--overwrite")


def test_durations_that_are_nothing(tmp_path: Path) -> None:
    cdd.save(tmp_path / "d.cdd", np.array(["NaT", 5], "m8[ms]"))
    for form, text in (("csv", 'value\n""\n5\n'), ("jsonl", "null\n5\n")):
        assert run(tmp_path / "d.cdd", "--as", form, program=("read",)) == text
        (tmp_path / f"in.{form}").write_text(text)
        to = tmp_path / f"{form}.cdd"
        run(to, tmp_path / f"in.{form}", "--dtype", "timedelta64[ms]", program=("append",))
        assert np.isnat(cdd.load(to)[0]) and cdd.load(to)[1] == np.timedelta64(5, "ms")
