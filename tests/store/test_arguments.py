"""Arguments of a wrong type or size: the error names them, what is allowed and what came."""

import datetime
import io
import os
import pickle
import re
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import cdd
from cdd import arguments

BOOK = np.ones((100, 5, 3), np.float32)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "a.cdd"
    cdd.save(path, BOOK)
    return path


@pytest.mark.parametrize(
    ("options", "error", "text"),
    [
        ({"chunk_rows": 64.0}, TypeError, "chunk_rows is an integer, not 64.0"),
        ({"chunk_rows": 0}, ValueError, "chunk_rows is 0, 1 to 4294967295 are allowed"),
        ({"chunk_bytes": "4K"}, TypeError, "chunk_bytes is an integer, not '4K'"),
        ({"chunk_bytes": 1 << 32}, ValueError, "chunk_bytes is 4294967296, 1 to 4294967295 are allowed"),
        ({"chunk_rows": 8, "chunk_bytes": 4096}, ValueError, "chunk_rows (8) and chunk_bytes (4096) both"),
        ({"zstd_level": "3"}, TypeError, "zstd_level is an integer, not '3'"),
        ({"zstd_level": 1 << 80}, ValueError, f"zstd_level is {1 << 80}, 1 to 22 are allowed"),
        ({"float16": "yes"}, TypeError, "float16 is a bool, not 'yes'"),
        ({"float16": 1}, TypeError, "float16 is a bool, not 1"),
        ({"float16": True, "size_scale": "2"}, TypeError, "size_scale is a number, not '2'"),
        ({"float16": True, "normalise": 3}, TypeError, "normalise is a str, not 3"),
        ({"codec": None}, TypeError, "codec is a str, not None"),
        ({"dtype": "f4", "row_shape": 50}, TypeError, "row_shape is a tuple of integers, () for rows of one"),
        ({"dtype": "f4", "row_shape": "50"}, TypeError, "row_shape is a tuple of integers"),
        ({"dtype": "f4", "row_shape": (3.0,)}, TypeError, "dimension 1 of row_shape is an integer, not 3.0"),
        (
            {"dtype": "f4", "row_shape": (2, -3)},
            ValueError,
            "dimension 2 of row_shape is -3, 1 to 2147483648",
        ),
        (
            {"dtype": "price", "row_shape": ()},
            TypeError,
            "dtype is a NumPy dtype or the name of one, not 'price'",
        ),
    ],
    ids=repr,
)
def test_options_of_writers(
    path: Path, options: dict[str, object], error: type[Exception], text: str
) -> None:
    with pytest.raises(error, match=re.escape(text)):
        cdd.open(path, "w", **options)  # type: ignore[call-overload]
    assert len(cdd.load(path)) == 100, "a refused option must not touch the file"


@pytest.mark.parametrize(
    ("options", "error", "text"),
    [
        ({"max_chunk_bytes": "2G"}, TypeError, "max_chunk_bytes is an integer, not '2G'"),
        ({"max_chunk_bytes": 0}, ValueError, "max_chunk_bytes is 0, 1 to"),
        ({"max_chunk_bytes": 1 << 63}, ValueError, f"max_chunk_bytes is {1 << 63}, 1 to"),
        ({"mmap": "yes"}, TypeError, "mmap is a bool, not 'yes'"),
        ({"check": True}, TypeError, "check is a str, not True"),
    ],
    ids=repr,
)
def test_options_of_readers(
    path: Path, options: dict[str, object], error: type[Exception], text: str
) -> None:
    with pytest.raises(error, match=re.escape(text)):
        cdd.open(path, **options)  # type: ignore[call-overload]


def test_numbers_of_numpy_are_numbers(path: Path) -> None:
    with cdd.open(
        path,
        "w",
        chunk_rows=np.int64(7),
        zstd_level=np.uint8(3),
        float16=np.bool_(False),  # type: ignore[arg-type]
    ) as writer:
        writer.append(BOOK)
    with cdd.open(path, max_chunk_bytes=np.int64(1 << 20)) as reader:  # type: ignore[arg-type]
        assert reader.chunk_infos[0].stop == 7
        assert np.array_equal(reader.read(np.int64(3), np.uint8(5)), BOOK[3:5])  # type: ignore[arg-type]


def test_arguments_of_reads(path: Path) -> None:
    out = np.empty((64, 5, 3), np.float32)
    with cdd.open(path) as reader:
        for arguments, text in (
            (("a",), "start of read(start, stop, out) is an integer, not 'a'"),
            ((0, 6.5), "stop of read(start, stop, out) is an integer, not 6.5"),
            (
                (out, 0, 64),
                "start of read(start, stop, out) is an integer, not an array of float32 and shape (64, 5",
            ),
        ):
            with pytest.raises(TypeError, match=re.escape(text)):
                reader.read(*arguments)  # type: ignore[call-overload]
        with pytest.raises(TypeError, match=re.escape("number of chunk() is an integer, not 'a'")):
            reader.chunk("a")  # type: ignore[arg-type]


def test_numbers_of_threads() -> None:
    for number, error, text in (
        ("2", TypeError, "number is an integer, not '2'"),
        (-1, ValueError, "number is -1, 0 to 1024 are allowed"),
        (1025, ValueError, "number is 1025, 0 to 1024 are allowed"),
    ):
        with pytest.raises(error, match=text):
            cdd.set_threads(number)  # type: ignore[arg-type]


WRONG_THREADS = ("two", "3x", " 3", "-1", "1025", "1e3")


@pytest.mark.parametrize(
    ("text", "number"),
    [("3", 3), ("1024", 1024), ("0", 0), ("", 0), *((text, 0) for text in WRONG_THREADS)],
)
def test_threads_of_the_environment(text: str, number: int) -> None:
    """What is no number changes nothing, and says so."""
    try:
        cdd.set_threads(number)
        expected = cdd.threads()
    finally:
        cdd.set_threads(0)
    command = [
        sys.executable,
        "-P",
        "-c",
        "import sys; sys.path[:0] = sys.argv[1:]; import cdd; print(cdd.threads())",
    ]
    command.append(str(Path(cdd.__file__).parent.parent))
    env = os.environ | {"CDD_THREADS": text}
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=env)
    assert int(done.stdout) == expected
    assert (f"RuntimeWarning: CDD_THREADS={text!r} is not a number" in done.stderr) == (text in WRONG_THREADS)


def test_what_no_store_is_opened_by(path: Path) -> None:
    sources = ((BOOK, "an array of float32 and shape (100, 5, 3)"), (3, "3"), (io.BytesIO(), "<_io.BytesIO"))
    for source, came in sources:
        text = f"a store is opened by a path, bytes that hold a store, or a cdd.Memory, not by {came}"
        for use in (cdd.open, cdd.load):
            with pytest.raises(TypeError, match=re.escape(text)):
                use(source)  # type: ignore[arg-type, operator]
        with pytest.raises(
            TypeError, match=re.escape(f"a path or a cdd.Memory to be written, not by {came}")
        ):
            cdd.open(source, "w")  # type: ignore[call-overload]
    with pytest.raises(TypeError, match=r"a path or a cdd\.Memory to be written, not by an array"):
        cdd.save(BOOK, [1, 2])  # type: ignore[arg-type]
    with pytest.raises(TypeError, match=re.escape("bytes(memory) can, and cdd.open reads them")):
        pickle.dumps(cdd.Memory())


def test_reprs_before_there_are_rows(tmp_path: Path) -> None:
    with cdd.open(tmp_path / "a.cdd", "w") as writer:
        assert "no rows yet, dtype and shape come with the first" in repr(writer)
        with cdd.open(tmp_path / "a.cdd") as reader:
            assert "no rows yet, dtype and shape come with the first" in repr(reader)
        writer.append(BOOK)
        assert "shape (100, 5, 3), dtype float32" in repr(writer)


def test_sources_that_are_not_compiled(tmp_path: Path) -> None:
    package = Path(cdd.__file__).parent
    (tmp_path / "cdd").mkdir()
    for source in package.glob("*.py"):
        shutil.copy(source, tmp_path / "cdd")
    command = [sys.executable, "-c", "import cdd"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 1
    assert re.search(
        r"ImportError: .*__init__\.py is of cdd's sources, .* not compiled.*python -P", done.stderr
    )


def test_errors_of_two_files_name_the_right_one(path: Path, tmp_path: Path) -> None:
    there = tmp_path / "a.cdd.there"
    there.write_bytes(b"precious")
    uses = (
        lambda source, output: cdd.repair(source, output),
        lambda source, output: cdd.truncate(source, output, rows=3),
        lambda source, output: cdd.compact(source, output),
    )
    for use in uses:
        with pytest.raises(FileExistsError, match="cannot create the file") as caught:
            use(path, there)
        assert caught.value.filename == str(there)
        with pytest.raises(FileNotFoundError) as caught_missing:
            use(tmp_path / "a.cdd.missing", tmp_path / "a.cdd")
        assert caught_missing.value.filename == str(tmp_path / "a.cdd.missing")
    assert there.read_bytes() == b"precious"


def test_spans_of_time() -> None:
    told = {
        "5ns": 5,
        "100ms": 10**8,
        "1s": 10**9,
        "2min": 120 * 10**9,
        "2m": 120 * 10**9,
        "1D": 86400 * 10**9,
    }
    told |= {"": 0, "1": 0, "1.5s": 0, "-1s": 0, "1 fortnight": 0, "0s": 0}
    for text, expected in told.items():
        assert arguments.span_ns(text) == expected, text
    assert arguments.span_ns(np.timedelta64(3, "us")) == 3000
    assert arguments.span_ns(datetime.timedelta(hours=1)) == 3600 * 10**9
    assert arguments.span_ns([]) == arguments.span_ns(np.timedelta64(-1, "s")) == 0
