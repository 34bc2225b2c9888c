"""python -m cdd as a process of its own: exit status, and output that goes nowhere."""

import os
import subprocess
import sys
from pathlib import Path
from typing import IO

import numpy as np
import pytest

import cdd


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "a.cdd"
    cdd.save(path, np.arange(4000).reshape(1000, 4), chunk_rows=10)
    return path


def run(*arguments: object, stdout: int | IO[bytes] = subprocess.PIPE) -> subprocess.CompletedProcess[str]:
    env = os.environ | {"PYTHONPATH": os.pathsep.join([str(Path(cdd.__file__).parent.parent), *sys.path])}
    command = [sys.executable, "-P", "-W", "error", "-m", "cdd", *map(str, arguments)]
    return subprocess.run(
        command, stdout=stdout, stderr=subprocess.PIPE, text=True, env=env, timeout=120, check=False
    )


def test_it_runs_as_a_module(path: Path) -> None:
    done = run("verify", path)
    assert (done.returncode, done.stderr) == (0, "")
    with cdd.open(path) as reader:
        chunk = reader.chunk_infos[3]
    content = bytearray(path.read_bytes())
    content[chunk.offset + chunk.stored_bytes - 5] ^= 1
    path.write_bytes(content)
    assert run("verify", path).returncode == 1
    assert run("verify").returncode == 2
    assert run().returncode == 2
    assert "repair" in run("--help").stdout


@pytest.mark.parametrize("command", ["info", "verify", "repair"])
def test_output_that_takes_nothing(path: Path, command: str) -> None:
    """The file that was looked at is not to blame."""
    if (takes_nothing := Path("/dev/full")).exists():
        with takes_nothing.open("wb") as full:
            done = run(command, path, stdout=full)
        assert (done.returncode, done.stderr) == (1, "standard output: No space left on device\n")
    reading, writing = os.pipe()
    os.close(reading)
    with os.fdopen(writing, "wb") as closed:
        done = run(command, path, *(["--overwrite"] if command == "repair" else []), stdout=closed)
    assert done.returncode == 1
    if os.name == "posix":
        assert done.stderr == ""
