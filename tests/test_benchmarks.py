"""Benchmarks that start processes run: what they measure is no test."""

import subprocess
import sys
from pathlib import Path

import pytest

TILES = Path(__file__).resolve().parents[1] / "benchmarks" / "tiles.py"


@pytest.mark.skipif(sys.platform == "win32", reason="memory is measured by /proc")
def test_tiles_are_measured(tmp_path: Path) -> None:
    options = ["--frames", "1", "--times", "1", "--kinds", "camera", "--codecs", "raw", "--writers", "cdd"]
    command = [sys.executable, str(TILES), *options, "--folder", str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "raw         cdd" in done.stdout and "s/GB CPU" in done.stdout
