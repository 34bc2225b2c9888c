"""Writers that are killed at any moment, and several at once: no acknowledged append is lost, none is half.

CDD_LOGICAL_KILLS and CDD_LOGICAL_APPENDS are how many; dev.py soak runs many.
"""

import os
import random
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from cdd import logical

KILLS = int(os.environ.get("CDD_LOGICAL_KILLS", "3"))
APPENDS = int(os.environ.get("CDD_LOGICAL_APPENDS", "16"))

# Appends blocks of 8 rows that hold their number; says each number once its append has returned.
WRITER = """
import sys
import numpy as np
from cdd import logical
where, first, count, kind = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), sys.argv[4]
for number in range(first, first + count):
    rows = np.full((8, 3), number, "i4")
    logical.append(where, "a", rows, "cdd" if kind == "json" else None, chunks=None, retries=20)
    print(number, flush=True)
"""


def create(tmp_path: Path, kind: str) -> Path:
    where = tmp_path / ("a.json" if kind == "json" else "place")
    if kind == "store":
        pytest.importorskip("zarr").create_group(where)
    if kind == "repo":
        pytest.importorskip("icechunk")
    with logical.transaction(where, create=kind != "store") as t:
        t.create("a", shape=(0, 3), dtype="i4", grid=(8, 3))
    return where


def start(where: Path, first: int, count: int, kind: str) -> "subprocess.Popen[str]":
    command = [sys.executable, "-P", "-c", WRITER, str(where), str(first), str(count), kind]
    quiet = {**os.environ, "ICECHUNK_LOG": "error"}  # it warns on standard output
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=quiet)


def whole_blocks(where: Path) -> list[int]:
    """The number of each block, all rows of which must be that."""
    found = logical.open(where, None if where.suffix == ".json" else "a")[:]
    assert len(found) % 8 == 0
    blocks = found.reshape(-1, 24)
    assert (blocks == blocks[:, :1]).all()
    return [int(number) for number in blocks[:, 0]]


@pytest.mark.parametrize("kind", ["repo", "store", "json"])
def test_killed_writers(tmp_path: Path, kind: str, record_property: Callable[[str, object], None]) -> None:
    where = create(tmp_path, kind)
    acknowledged: list[int] = []
    first = 0
    for _ in range(KILLS):
        with start(where, first, 1000, kind) as writer:
            assert writer.stdout is not None
            acknowledged.append(int(writer.stdout.readline()))  # it is under way
            time.sleep(random.uniform(0, 0.25))
            writer.kill()
            rest = writer.communicate()[0].split("\n")[:-1]
        acknowledged += [int(line) for line in rest]
        found = whole_blocks(where)
        assert set(acknowledged) <= set(found)
        assert len(found) == len(set(found))
        assert found == sorted(found)
        first = 1 + max(found)
    name = None if kind == "json" else "a"
    report = logical.check(where, name)
    assert report.ok
    logical.prune(where)
    assert logical.check(where, name).orphans == []
    assert set(acknowledged) <= set(whole_blocks(where))
    record_property("writers of logical arrays killed", KILLS)
    record_property("acknowledged appends that are there", len(acknowledged))


@pytest.mark.parametrize("kind", ["repo", "json"])
def test_several_writers(tmp_path: Path, kind: str, record_property: Callable[[str, object], None]) -> None:
    where = create(tmp_path, kind)
    each = APPENDS // 4
    writers = [start(where, number * each, each, kind) for number in range(4)]
    said: list[int] = []
    for writer in writers:
        out, _ = writer.communicate(timeout=3600)
        assert writer.returncode == 0
        said += [int(line) for line in out.split()]
    assert sorted(said) == list(range(4 * each))
    found = whole_blocks(where)
    assert sorted(found) == sorted(said)
    for number in range(4):  # each one's in its order
        own = [block for block in found if block // each == number]
        assert own == sorted(own)
    assert np.unique(found).size == len(found)
    record_property("appends by four processes", len(found))
