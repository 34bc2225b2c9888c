"""Writers that nobody closes: collected ones, those of daemon threads, and a forked child's."""

import gc
import os
import signal
import subprocess
import sys
import threading
import warnings
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from cdd import tiles
from tests.tiles.conftest import camera, writer_options


def test_a_writer_that_nobody_closed_is_closed_with_a_warning(tmp_path: Path) -> None:
    path, frames = tmp_path / "a.zarr", camera(6, 40, 50)
    w = tiles.open(path, "w", **writer_options())
    w.append(frames)
    with pytest.warns(ResourceWarning, match="unclosed"):
        del w
        gc.collect()
    np.testing.assert_array_equal(tiles.open(path)[...], frames)
    script = "import sys, cdd.tiles, numpy as np\nw = cdd.tiles.open(sys.argv[1], 'w', shape=(None, 8, 8), "
    script += "dtype='u2', tile_shape=(4, 8, 8))\nw.append(np.ones((6, 8, 8), 'u2'))"
    subprocess.run([sys.executable, "-P", "-c", script, str(tmp_path / "b.zarr")], check=True)
    assert tiles.open(tmp_path / "b.zarr").shape == (6, 8, 8)


def test_writers_of_daemon_threads_are_closed_at_the_end(tmp_path: Path) -> None:
    script = """
import sys, threading, time
import numpy as np
import cdd.tiles

def loop(path):
    w = cdd.tiles.open(path, "w", shape=(None, 64, 64), dtype="u2", tile_shape=(64, 64, 64))
    for n in range(1 << 16):
        if n == 40:
            received.release()
        w.append(np.full((64, 64), n, "u2"))

received = threading.Semaphore(0)
for path in sys.argv[1:]:
    threading.Thread(target=loop, args=(path,), daemon=True).start()
for path in sys.argv[1:]:
    received.acquire()
"""
    paths = [str(tmp_path / f"{k}.zarr") for k in range(3)]
    done = subprocess.run([sys.executable, "-P", "-c", script, *paths], capture_output=True, timeout=120)
    assert done.returncode == 0, done.stderr.decode()
    for path in paths:
        assert not Path(path, ".cdd-journal").exists()  # nothing to be taken up
        with tiles.open(path) as r:
            assert len(r) >= 40
            np.testing.assert_array_equal(r[:, 5, 7], np.arange(len(r)))


def says_closed(work: Callable[[], object]) -> bool:
    try:
        work()
    except ValueError as error:
        return "another process" in str(error)
    return False


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.parametrize("scales", [1, 2])
def test_a_child_has_no_part_in_it(tmp_path: Path, scales: int) -> None:
    """Whatever another thread was doing in the writer at the time of the fork."""
    frames = camera(9, 40, 50)
    options = writer_options(scales=scales, dimension_names="tyx")
    is_over = threading.Event()
    with tiles.open(tmp_path / "a.zarr", "w", **options) as w:

        def append() -> None:
            while not is_over.is_set():
                w.append(frames)

        thread = threading.Thread(target=append)
        thread.start()
        for _ in range(20):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", DeprecationWarning)  # of threads that a fork lacks
                child = os.fork()
            if child == 0:
                try:
                    signal.alarm(20)
                    w.progress()
                    calls = (lambda: w.append(frames), lambda: w.write(frames[0]), w.flush)
                    wrong = sum(not says_closed(call) for call in calls)
                    w.close()
                    os._exit(wrong)
                finally:
                    os._exit(9)
            assert os.waitpid(child, 0)[1] == 0
        is_over.set()
        thread.join()
        count = len(w) // 9
    with tiles.open(tmp_path / "a.zarr") as r:
        np.testing.assert_array_equal(r[...], np.tile(frames, (count, 1, 1)))
