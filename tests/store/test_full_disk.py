"""A disk that is full, at many points of a writer's life: what append() and flush() accepted is there, what
they refused is not, and once there is room the writer goes on.

The disk is a tmpfs where one can be mounted (by root), and a limit on the size of files. CDD_FULL_DISK_POINTS
says how often.
"""

import errno
import os
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest

import cdd
from tests.rig.small_disk import resize, small_disk

resource = pytest.importorskip("resource")
POINTS = int(os.environ.get("CDD_FULL_DISK_POINTS", "5"))
Resize = Callable[[int], None]  # gives the disk as many bytes


@pytest.fixture(params=["tmpfs", "limit"])
def disk(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[tuple[Path, Resize]]:
    if request.param == "tmpfs":
        with small_disk(tmp_path, 16 << 20):
            yield tmp_path, lambda size: resize(tmp_path, size)
    else:
        before = resource.getrlimit(resource.RLIMIT_FSIZE)
        try:
            yield tmp_path, lambda size: resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, before)


def rows_from(first: int, count: int) -> np.ndarray:
    """Rows that do not shrink."""
    rows = np.random.default_rng(first).integers(0, 1 << 62, (count, 16))
    rows[:, 0] = np.arange(first, first + count)
    return rows


@pytest.mark.parametrize("durability", ["none", "flush", "always"])
def test_a_full_disk(
    disk: tuple[Path, Resize], durability: str, record_property: Callable[[str, object], None]
) -> None:
    record_property("points", POINTS)
    folder, resize = disk
    path = folder / "a.cdd"
    refused = poisoned = 0
    for point in range(POINTS):
        path.unlink(missing_ok=True)
        resize(16 << 20)
        expected = [rows_from(0, 10)]
        writer = cdd.open(path, "w", chunk_rows=10, durability=durability)
        writer.append(expected[0])
        writer.flush()
        resize(40_000 + 8192 * point + 1000 * (point % 8))
        for attempt in range(400):
            rows = rows_from(len(writer), (10, 10, 50)[attempt % 3])
            try:
                writer.append(rows)
                expected.append(rows)
                writer.flush()
            except OSError as error:
                assert error.errno in (errno.ENOSPC, errno.EFBIG)
                refused += 1
                if refused % 4 == 0:
                    break
        assert refused
        found = cdd.load(path)
        whole = np.concatenate(expected)
        assert np.array_equal(found, whole[: len(found)])
        assert len(found) >= len(whole) - 50
        resize(16 << 20)
        try:
            writer.append(rows_from(len(writer), 0))
        except ValueError as error:
            assert "cannot go on" in str(error)
            poisoned += 1
            writer.close()
            writer = cdd.open(path, "a", durability=durability)
            assert len(writer) == len(found)
        whole = whole[: len(writer)]
        more = rows_from(len(writer), 100)
        writer.append(more)
        writer.close()
        assert np.array_equal(cdd.load(path), np.concatenate([whole, more]))
    assert poisoned == 0, "a full disk alone poisons no writer"
