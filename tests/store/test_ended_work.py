"""Long work that is ended before it is done: by Ctrl-C, or by what progress() raises."""

import signal
import threading
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import cdd


@pytest.mark.parametrize("work", ["repair", "truncate", "compact"])
def test_progress_is_told_and_what_it_raises_ends_the_work(tmp_path: Path, work: str) -> None:
    path = tmp_path / "a.cdd"
    rows = np.random.default_rng(3).random((3000, 500))
    cdd.save(path, rows, chunk_rows=30)
    before = path.read_bytes()
    told: list[tuple[int, int]] = []

    def run(progress: Callable[[int, int], object]) -> None:
        if work == "repair":
            cdd.repair(path, overwrite=True, progress=progress)
        elif work == "truncate":
            cdd.truncate(path, rows=2995, progress=progress)
        else:
            cdd.compact(path, tmp_path / "out.cdd", overwrite=True, progress=progress)

    class EndedError(Exception):
        pass

    def end(done: int, total: int) -> None:
        told.append((done, total))
        raise EndedError

    with pytest.raises(EndedError):
        run(end)
    assert len(told) == 1, "nothing goes on"
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path], "nothing is left behind"
    run(lambda *at: told.append(at))
    assert len(told) > 1
    total = {"repair": len(before), "truncate": 2995, "compact": 3000}[work]
    assert all(0 <= done <= total == of for done, of in told)
    assert [done for done, _ in told[1:]] == sorted(done for done, _ in told[1:])


@pytest.mark.skipif(not hasattr(signal, "pthread_kill"), reason="no signals to a thread here")
@pytest.mark.parametrize("work", ["repair", "truncate", "compact"])
def test_ctrl_c_ends_the_work_at_the_next_chunk(tmp_path: Path, work: str) -> None:
    """The signal comes when the output's temporary file is there; the work would take much longer."""
    path = tmp_path / "a.cdd"
    rows = np.random.default_rng(3).random((60_000, 50))
    cdd.save(path, rows, chunk_rows=1)
    main = threading.get_ident()

    def interrupt() -> None:
        for _ in range(10000):
            if len(list(tmp_path.iterdir())) > 1:
                break
            time.sleep(0.001)
        signal.pthread_kill(main, signal.SIGINT)

    thread = threading.Thread(target=interrupt)
    thread.start()
    with pytest.raises(KeyboardInterrupt):
        if work == "repair":
            cdd.repair(path)
        elif work == "truncate":
            cdd.truncate(path, rows=59_999)
        else:
            cdd.compact(path, profile="dense", codec="zstd", zstd_level=19)
        thread.join()  # the signal was handled only now: too late
        time.sleep(1)
    thread.join()
    assert list(tmp_path.iterdir()) == [path]
    assert len(cdd.open(path)) == 60_000
