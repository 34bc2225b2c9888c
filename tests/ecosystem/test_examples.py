"""The examples run, of training with PyTorch and without, and end well."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent.parent
WITHOUT = "import sys, runpy; sys.modules['torch'] = None; runpy.run_path(sys.argv[1], run_name='__main__')"


def output_of(*words: str, name: str = "train") -> str:
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(p for p in sys.path if p)}
    command = [sys.executable, "-P", *words, str(ROOT / f"examples/python/{name}.py")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, env=environment)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_training_with_torch() -> None:
    pytest.importorskip("torch", exc_type=ImportError)
    text = output_of()
    assert "stopped and saved" in text
    assert "told right" in text


def test_training_without_torch() -> None:
    text = output_of("-c", WITHOUT)
    assert "no PyTorch here" in text
    assert "told right" in text


def test_collecting() -> None:
    text = output_of(name="collect")
    assert "rejected {'sequence': 1, 'waiting': 18}" in text
    assert "sessions begin at rows [0, 1500]: ['start', 'sequence']" in text
    assert "2,854 windows of 64 rows cross no gap" in text


def test_migration() -> None:
    pytest.importorskip("zarr")
    assert "verified bit for bit" in output_of(name="migrate")


def test_object_stores() -> None:
    pytest.importorskip("obstore")
    text = output_of(name="remote")
    assert "by 32 requests" in text
    assert "superchunks" in text
