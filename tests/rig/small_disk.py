"""A disk of a few MB: a tmpfs, where one can be mounted (by root, on Linux)."""

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest


def mounted(folder: Path, *options: str) -> bool:
    command = ["mount", "-t", "tmpfs", "-o", ",".join(options), "tmpfs", str(folder)]
    try:
        return subprocess.run(command, capture_output=True, check=False).returncode == 0
    except FileNotFoundError:
        return False


def resize(folder: Path, size: int) -> None:
    assert mounted(folder, "remount", f"size={size}")


@contextmanager
def small_disk(folder: Path, size: int) -> Iterator[Path]:
    """The folder, as a disk of `size` bytes that resize() changes; else the test is skipped."""
    folder.mkdir(exist_ok=True)
    if sys.platform != "linux" or not mounted(folder, f"size={size}"):
        pytest.skip("no tmpfs can be mounted here")
    try:
        yield folder
    finally:
        subprocess.run(["umount", "--lazy", str(folder)], check=True)
