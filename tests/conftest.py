"""What all Python tests share: the folder of recorded data, and hypothesis' settings."""

import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path

import hypothesis
import numpy as np
import pytest

# A shell's background job ignores Ctrl-C, and so would all that the tests start.
if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

ROOT = Path(__file__).resolve().parent.parent
sys.path.append(str(ROOT))  # behind the installed package: where spawned processes find the tests' functions

# How long an example takes is up to the machine: no deadline. On CI the examples are the same each time.
hypothesis.settings.register_profile("dev", deadline=None)
hypothesis.settings.register_profile("ci", deadline=None, derandomize=True, print_blob=True, database=None)
hypothesis.settings.load_profile("ci" if os.environ.get("CI") else "dev")


@pytest.fixture(scope="session")
def data_dir() -> Path:
    """The folder of recorded books and series; the test is skipped where it is not."""
    folder = Path(os.environ.get("CDD_DATA") or ROOT.parent / "shared" / "data")
    if not (folder / "index.json").exists():
        pytest.skip(f"no recorded data in {folder} (CDD_DATA names another folder)")
    return folder


@pytest.fixture(scope="session")
def recorded(data_dir: Path) -> Callable[[str], np.ndarray]:
    """recorded("lob/es_1s") is that recording as an array: the books, not their times."""

    def load(name: str) -> np.ndarray:
        with np.load(data_dir / f"{name}.npz") as archive:
            return archive["ob" if "ob" in archive else "a"]

    return load
