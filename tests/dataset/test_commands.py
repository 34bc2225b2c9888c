"""python -m cdd on datasets."""

import io
import subprocess
import sys
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path

import numpy as np
import pytest

import cdd as store
import cdd.dataset as datasets
from cdd.commands import main


def cdd(*arguments: object) -> tuple[int, str]:
    """Exit code and text of a command, in this process."""
    text = io.StringIO()
    with redirect_stdout(text), redirect_stderr(text):
        status = main([*map(str, arguments)])
    return status, text.getvalue()


@pytest.fixture
def path(tmp_path: Path) -> Path:
    with datasets.open(tmp_path / "set", "w") as w:
        w.append(time=np.arange(100), price=np.arange(100) / 2)
        w["trades"].append(size=np.arange(7))
        w.commit("first")
    for i in range(3):
        with datasets.transaction(tmp_path / "set", f"change {i}") as t:
            t["price"][i * 20] = 0.25
    return tmp_path / "set"


def test_looking(path: Path) -> None:
    status, text = cdd("info", path)
    assert status == 0
    assert "100 rows, clock time" in text
    assert "price: (100,) float64, 4 superchunks" in text
    status, text = cdd("versions", path, "--last", 2)
    assert [line.split()[0] for line in text.splitlines()] == ["6", "5"]
    assert "change 2" in text
    status, text = cdd("verify", path)
    assert status == 0
    assert text.count("ok, ") == 3
    (path / "data" / "price" / "__2__.cdd").unlink()
    status, text = cdd("verify", path)
    assert status == 1
    assert "price: superchunk 2, data/price/__2__.cdd: it is missing" in text
    status, quiet = cdd("verify", "-q", path)
    assert (status, quiet.splitlines()) == (1, [line for line in text.splitlines() if "missing" in line])


def test_tag_expire_prune_compact(path: Path) -> None:
    assert cdd("tag", path, "paper", "--version", 3) == (0, f"{path}: paper is version 3\n")
    status, text = cdd("expire", path, "--keep", 1)
    assert (status, text) == (0, f"{path}: 3 versions are kept\n")
    status, text = cdd("compact", path)
    assert status == 0
    assert "written, in place of smaller ones" in text
    assert datasets.open(path)["price"].fragments < 7
    status, text = cdd("prune", path, "--orphans")
    assert status == 0
    assert "deleted" in text
    assert len(datasets.open(path, as_of="paper")) == 100
    assert cdd("tag", path, "paper", "--delete")[0] == 0
    status, text = cdd("tag", path, "late", "--version", 3)
    assert status == 1
    assert "expired" in text
    assert cdd("versions", path / "nothing")[0] == 1


def test_superchunks_are_not_rewritten_by_themselves(path: Path) -> None:
    file = path / "data" / "price" / "__1__.cdd"
    before = file.read_bytes()
    for arguments in (("compact", file), ("truncate", file, "--rows", 3)):
        status, text = cdd(*arguments)
        assert status == 1
        assert "belongs to a dataset" in text
    assert file.read_bytes() == before
    assert cdd("truncate", file, "--rows", 3, "--output", path.parent / "first.cdd")[0] == 0


def test_the_example_runs() -> None:
    example = Path(__file__).parent.parent.parent / "examples" / "python" / "dataset.py"
    done = subprocess.run([sys.executable, "-P", str(example)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "row 1,005 is 0.0 now" in done.stdout


def test_compact_honours_its_options(path: Path) -> None:
    def codecs() -> set[str]:
        datasets.expire(path, keep=1)
        datasets.prune(path)
        files = (path / "data").rglob("*.cdd")
        return {chunk.codec for file in files for chunk in store.open(file).chunk_infos}

    status, text = cdd("compact", path, "--codec", "raw")
    assert (status, "3 files written, in place of others" in text) == (0, True), text
    assert codecs() == {"raw"}
    status, text = cdd("compact", path, "--codec", "zstd", "--zstd-level", "9", "--profile", "dense")
    assert status == 0
    assert codecs() == {"zstd"}
    for refused in (["--output", "x"], ["--overwrite"]):
        assert cdd("compact", path, *refused)[0] == 2
        assert cdd("repair", path, *refused)[0] == 2
    with datasets.open(path, "a") as w:
        w.append(time=[100], price=[1.0])
        w.commit()
        with pytest.warns(RuntimeWarning, match="the last file of each column .* stays as it is"):
            assert cdd("compact", path, "--profile", "dense")[0] == 0
