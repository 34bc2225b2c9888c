"""A dataset that was closed holds no files, though it and its columns are still there."""

import sys
from pathlib import Path

import numpy as np
import pytest

from cdd import dataset

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="open files as Linux tells them")


def held(folder: Path) -> list[str]:
    """Files of a folder that this process has open or mapped."""
    links = [fd for fd in Path("/proc/self/fd").iterdir() if fd.is_symlink()]
    files = [str(fd.readlink()) for fd in links if fd.is_symlink()]
    maps = [line.partition("/")[2] for line in Path("/proc/self/maps").read_text().splitlines()]
    return [name for name in [*files, *(f"/{name}" for name in maps)] if name.startswith(str(folder))]


@pytest.mark.parametrize("mmap", [True, False])
def test_close_lets_go_of_all_files(mmap: bool, tmp_path: Path) -> None:
    with dataset.open(tmp_path / "d", "w", clock=None, superchunk_bytes=1 << 16) as writer:
        for seed in range(4):
            writer.append(n=np.random.default_rng(seed).integers(0, 1 << 62, 10_000))
            writer.commit()
    ds = dataset.open(tmp_path / "d", mmap=mmap)
    column = ds["n"]
    rows = column[:]
    assert len(rows) == 40_000 and ds.verify().ok and len(held(tmp_path / "d")) > 3
    ds.close()
    ds.close()
    assert held(tmp_path / "d") == []
    with pytest.raises(ValueError, match="closed"):
        column[:1]
