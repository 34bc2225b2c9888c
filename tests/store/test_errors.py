"""What bad input gets: a typed error with the numbers in its text, and nothing half-written to be seen."""

import errno
import os
import struct
import subprocess
import sys
import tempfile
import textwrap
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import cdd

ROWS = np.random.default_rng(2).random((1000, 4))


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "a.cdd"
    cdd.save(path, ROWS, chunk_rows=10)
    return path


def in_another_process(code: str, *args: object) -> str:
    """What `code` prints in a fresh interpreter that has the same cdd."""
    script = "import errno, os, sys\nimport numpy as np\nimport cdd\n" + textwrap.dedent(code)
    env = os.environ | {"PYTHONPATH": os.pathsep.join([str(Path(cdd.__file__).parent.parent), *sys.path])}
    command = [sys.executable, "-P", "-W", "error", "-c", script, *map(str, args)]
    done = subprocess.run(command, capture_output=True, text=True, env=env, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_the_tree() -> None:
    assert issubclass(cdd.FormatError, cdd.CddError)
    assert issubclass(cdd.TruncatedError, cdd.FormatError)
    assert issubclass(cdd.ChecksumError, cdd.FormatError)
    assert issubclass(cdd.UnsupportedError, cdd.CddError)
    assert not issubclass(cdd.UnsupportedError, cdd.FormatError)
    assert cdd.CddError("x").chunk is None
    assert cdd.CddError("x").offset is None
    assert cdd.CddError.__module__ == "cdd"


@pytest.mark.parametrize("mmap", [False, True, None])
def test_what_is_no_store(tmp_path: Path, mmap: bool | None) -> None:
    with pytest.raises(FileNotFoundError) as caught:
        cdd.open(tmp_path / "missing.cdd", mmap=mmap)
    assert caught.value.filename == str(tmp_path / "missing.cdd")
    assert caught.value.errno == errno.ENOENT
    assert str(caught.value).count("missing.cdd") == 1
    with pytest.raises(PermissionError if sys.platform == "win32" else IsADirectoryError):
        cdd.open(tmp_path, mmap=mmap)
    other = tmp_path / "other.cdd"
    other.write_bytes(b"\x93NUMPY" * 100)
    with pytest.raises(cdd.FormatError, match="not a cdd file"):
        cdd.open(other, mmap=mmap)
    other.write_bytes(b"")
    with pytest.raises(
        cdd.TruncatedError, match=r'other\.cdd has 0 bytes, which is no store: mode "a" makes a file one$'
    ):
        cdd.open(other, mmap=mmap)
    assert other.read_bytes() == b""


def test_a_newer_version(path: Path) -> None:
    contents = bytearray(path.read_bytes())
    contents[4:6] = struct.pack("<H", 2)
    with pytest.raises(cdd.UnsupportedError, match=r"version 2.*version 1"):
        cdd.open(contents)


def test_a_damaged_header(path: Path, tmp_path: Path) -> None:
    """Each flipped byte of its metadata is found, and the error says where: in the header of which file."""
    contents = bytearray(path.read_bytes())
    (length,) = struct.unpack_from("<I", contents, 6)
    damaged = tmp_path / "damaged.cdd"
    for at in range(10, 10 + min(length, 60)):
        contents[at] ^= 0x41
        damaged.write_bytes(contents)
        contents[at] ^= 0x41
        for read in (cdd.open, cdd.repair):
            with pytest.raises(cdd.FormatError, match="header") as caught:
                read(damaged)
            assert str(damaged) in str(caught.value)
            assert caught.value.part == "header"
            assert caught.value.chunk is caught.value.offset is None


def test_a_cut_file(path: Path) -> None:
    """Every prefix opens with rows of the whole, or is refused; what it gives is right."""
    contents = path.read_bytes()
    for size in [*range(0, 6000, 97), *range(6000, len(contents), 1009), len(contents) - 1]:
        try:
            with cdd.open(contents[:size]) as reader:
                for start, block in reader.iter_chunks():
                    assert np.array_equal(block, ROWS[start : start + len(block)])
        except cdd.FormatError:
            pass


def test_a_chunk_that_is_cut_off(path: Path) -> None:
    with cdd.open(path) as reader:
        last = reader.chunk_infos[-1]
    os.truncate(path, last.offset + 20)
    with cdd.open(path) as reader:
        assert np.array_equal(reader[: last.start], ROWS[: last.start])
        with pytest.raises(cdd.TruncatedError, match=f"{last.stored_bytes} stored bytes") as caught:
            reader[last.start]
    assert caught.value.chunk == 99
    assert caught.value.offset == last.offset


@pytest.mark.parametrize("verify", ["stored", "once", "full"])
def test_a_damaged_chunk_costs_its_own_rows(path: Path, verify: str) -> None:
    with cdd.open(path) as reader:
        info = reader.chunk_infos[37]
    with path.open("r+b") as file:
        file.seek(info.offset + info.stored_bytes // 2)
        byte = file.read(1)[0]
        file.seek(-1, os.SEEK_CUR)
        file.write(bytes([byte ^ 1]))
    with cdd.open(path, check=verify) as reader:
        assert np.array_equal(reader[:370], ROWS[:370])
        assert np.array_equal(reader[380:], ROWS[380:])
        reads = (lambda: reader[365:375], lambda: reader[379], lambda: reader[[1, 375]])
        for read in reads:
            with pytest.raises(cdd.ChecksumError, match=rf"chunk 37 at {info.offset:#x}: .*check") as caught:
                read()
            error = caught.value
            assert (error.part, error.chunk, error.offset) == ("chunk", 37, info.offset)
            assert error.row is error.field is error.tile is None


@pytest.mark.parametrize("durability", ["batch", "always", "none"])
def test_a_store_without_dtype_whose_only_chunk_is_damaged(tmp_path: Path, durability: str) -> None:
    """Nothing tells what its rows are: an error, or no rows where no proof tells damage from a crash."""
    memory = cdd.Memory()
    left = tmp_path / "left.cdd"
    with cdd.open(memory, "w", chunk_rows=20, durability=durability) as writer:
        writer.append(ROWS[:20])
        as_written = bytes(memory)
    data = bytearray(bytes(memory) if durability == "batch" else as_written)
    first_block = 14 + struct.unpack_from("<I", data, 6)[0]  # behind METADATA: there is no user_meta
    (record,) = struct.unpack_from("<Q", data, first_block + 22)
    for place in [*range(first_block + 22, first_block + 54), *range(record, len(data))]:
        data[place] ^= 1
        left.write_bytes(data)
        if durability == "none":
            with pytest.raises(ValueError, match="no dtype yet"):
                cdd.load(left)
        else:
            for mode in ("r", "a"):
                with pytest.raises(cdd.ChecksumError, match=r"none of its chunks \(1\) is whole") as caught:
                    cdd.open(left, mode)
                assert caught.value.part == "chunk"
                assert caught.value.chunk is None
            assert left.read_bytes() == data, "nothing was cut off"
        report = cdd.repair(left, overwrite=True)
        assert report.rows == (20 if place < record else 0)
        if place < record:
            assert np.array_equal(cdd.load(report.output), ROWS[:20])
        data[place] ^= 1


def test_a_chunk_of_more_than_the_limit(path: Path) -> None:
    with cdd.open(path, max_chunk_bytes=320) as reader:
        assert np.array_equal(reader[:], ROWS)
    with cdd.open(path, max_chunk_bytes=319) as reader:
        with pytest.raises(cdd.LimitError, match=r"exceed the reader's limit of 319 raw bytes") as caught:
            reader[0]
        assert (caught.value.part, caught.value.chunk) == ("chunk", 0)
        assert not isinstance(caught.value, cdd.FormatError), "it is not damaged"
    with pytest.raises(ValueError, match="max_chunk_bytes"):
        cdd.open(path, max_chunk_bytes=0)


def test_closed(path: Path) -> None:
    reader = cdd.open(path)
    reader.close()
    reader.close()
    assert reader.closed
    assert reader.path == str(path)
    assert "closed" in repr(reader)
    out = np.empty((1, 4))
    uses: list[Callable[[], object]] = [
        lambda: reader[0], lambda: reader[:], lambda: reader[[1]], lambda: reader.read(0, 1),
        lambda: reader.read(0, 1, out=out), lambda: np.asarray(reader), lambda: len(reader),
        lambda: reader.shape, lambda: reader.nbytes, lambda: reader.stored_bytes, lambda: reader.user_meta,
        lambda: reader.nchunks, lambda: reader.chunk_infos, lambda: reader.chunk(0), lambda: list(reader),
        lambda: list(reader.iter_chunks()), reader.refresh, reader.verify, reader.__enter__,
        reader.__reduce__,
    ]  # fmt: skip
    for use in uses:
        with pytest.raises(ValueError, match=r"the reader of .*a\.cdd.* is closed"):
            use()
    writer = cdd.open(path, "a")
    writer.close()
    writer.close()
    for use in (lambda: writer.append(ROWS), writer.flush, writer.__enter__):
        with pytest.raises(ValueError, match=r"^(?=.*a\.cdd).*writer .*is closed"):
            use()


def test_a_second_writer(path: Path) -> None:
    with cdd.open(path, "a") as writer:
        for mode in ("a", "w"):
            with pytest.raises(BlockingIOError, match="another writer has") as caught:
                cdd.open(path, mode)  # type: ignore[call-overload]
            assert caught.value.filename == str(path)
            assert str(caught.value).count(str(path)) == 1
            assert "another writer has the file open" in str(caught.value)
        code = """
            for mode in "aw":
                try:
                    cdd.open(sys.argv[1], mode)
                except BlockingIOError as error:
                    print(error.filename == sys.argv[1], cdd.load(sys.argv[1]).shape)
        """
        assert in_another_process(code, path).splitlines() == ["True (1000, 4)"] * 2
        writer.append(ROWS)
    assert len(cdd.load(path)) == 2000
    with cdd.open(path, "a"):
        pass


@pytest.mark.skipif(sys.platform == "win32", reason="limits are POSIX's")
def test_a_full_disk(path: Path) -> None:
    """A limit on file sizes stands in for it: a write comes back short, the next one fails."""
    code = """
        import resource
        rows = np.random.default_rng(5).random((100_000, 4))
        path = sys.argv[1]
        w = cdd.open(path, "a")
        w.append(rows[:100])
        w.flush()
        limit = os.path.getsize(path) + 200_000
        resource.setrlimit(resource.RLIMIT_FSIZE, (limit, resource.RLIM_INFINITY))
        for n in (10_000, 100_000):
            try:
                w.append(rows[:n])
            except OSError as error:
                assert error.errno == errno.EFBIG and error.filename == path
            assert len(w) == 1100 and len(cdd.load(path)) == 1100, "nothing half-written is seen"
        w.append(rows[100:200])
        w.flush()
        assert len(cdd.load(path)) == 1200
        resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
        w.append(rows[200:])
        w.close()
        got = cdd.load(path)
        print(got.shape, np.array_equal(got[1000:], rows))
    """
    assert in_another_process(code, path) == "(101000, 4) True"


@pytest.mark.skipif(sys.platform == "win32", reason="permissions are POSIX's")
def test_a_place_one_may_not_write_to() -> None:
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        cdd.save(place / "a.cdd", ROWS)
        cdd.save(place / "secret.cdd", ROWS)
        (place / "a.cdd").chmod(0o444)
        (place / "secret.cdd").chmod(0)
        place.chmod(0o555)
        code = """
            if os.geteuid() == 0:
                os.setuid(65534)  # root may write anywhere
            for name, mode in (("new.cdd", "w"), ("new.cdd", "x"), ("new.cdd", "a"), ("a.cdd", "a"),
                               ("a.cdd", "w"), ("secret.cdd", "r")):
                try:
                    cdd.open(os.path.join(sys.argv[1], name), mode)
                except PermissionError as error:
                    print(os.path.basename(error.filename), error.errno == errno.EACCES)
            print(cdd.load(os.path.join(sys.argv[1], "a.cdd")).shape, sorted(os.listdir(sys.argv[1])))
        """
        lines = in_another_process(code, folder).splitlines()
        place.chmod(0o755)
        assert lines == [
            *["new.cdd True"] * 3, *["a.cdd True"] * 2, "secret.cdd True",
            "(1000, 4) ['a.cdd', 'secret.cdd']",
        ]  # fmt: skip
