"""Benchmarks that start processes run: what they measure is no test."""

import subprocess
import sys
from pathlib import Path

import pytest

FOLDER = Path(__file__).resolve().parents[1] / "benchmarks"


@pytest.mark.skipif(sys.platform == "win32", reason="memory is measured by /proc")
def test_tiles_are_measured(tmp_path: Path) -> None:
    options = ["--frames", "1", "--times", "1", "--kinds", "camera", "--codecs", "raw", "--writers", "cdd"]
    command = [sys.executable, str(FOLDER / "tiles.py"), *options, "--folder", str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "raw         cdd" in done.stdout and "s/GB CPU" in done.stdout


def test_no_process_finds_the_sources() -> None:
    """python -c looks for modules in the folder that it starts in, which has a cdd that is not compiled."""
    lines = [line for file in FOLDER.glob("*.py") for line in file.read_text().splitlines()]
    found = [line for line in lines if 'sys.executable, "-' in line]
    assert len(found) > 3
    assert all('sys.executable, "-P", "-c"' in line for line in found)
