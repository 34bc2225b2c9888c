"""A migration that is killed at any moment and started again: the target is the source bit for bit, and what
was written stays. CDD_MIGRATE_KILLS says how many are killed of each format.
"""

import os
import random
import signal
import time
import warnings
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import cdd
import cdd.dataset
from cdd.migrate import migrate
from tests.ecosystem.formats import FORMATS, book, same

for library in ("zarr", "h5py", "pyarrow.parquet", "blosc2"):
    pytest.importorskip(library)
pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="kills forked children")

KILLS = int(os.environ.get("CDD_MIGRATE_KILLS", "3"))
ROWS = 12_000
SLAB = 1 << 17


def forked(work: Callable[[], object]) -> int:
    """zarr's threads do not live on in a child: the parent never uses it."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        pid = os.fork()
    if pid == 0:
        code = 1
        try:
            work()
            code = 0
        except BaseException as error:
            os.write(2, f"{error!r}\n".encode())
        os._exit(code)
    return pid


@pytest.mark.parametrize("into", ["stores", "dataset"])
@pytest.mark.parametrize("name", ["zarr 3", "hdf5", "parquet"])
def test_kill_9(name: str, into: str, tmp_path: Path, record_property: Callable[[str, object], None]) -> None:
    kills = KILLS
    record_property("kills", kills)
    array = np.ascontiguousarray(book(ROWS))
    pid = forked(lambda: (tmp_path / "source").write_text(FORMATS[name](tmp_path, array)))
    assert os.waitpid(pid, 0)[1] == 0
    source = (tmp_path / "source").read_text()
    rng = random.Random(name)
    killed, turn, length = 0, 0, 1.0
    while killed < kills:
        target = tmp_path / (f"{turn}.cdd" if into == "stores" else f"{turn}")
        turn += 1
        had = 0
        while True:
            start = time.monotonic()
            pid = forked(lambda to=target: migrate(source, to, into=into, slab_bytes=SLAB, min_free=0))  # type: ignore[misc]
            if killed < kills:
                time.sleep(rng.uniform(0, length))
                os.kill(pid, signal.SIGKILL)
            status = os.waitpid(pid, 0)[1]
            if os.WIFSIGNALED(status):
                killed += 1
                if into == "stores" and target.exists() and target.stat().st_size:
                    with cdd.open(target) as reader:
                        rows = len(reader)
                        assert had <= rows and same(reader[:], array[:rows]), (killed, had, rows)
                    had = rows
                continue
            assert status == 0
            length = 0.8 * length + 0.2 * 1.1 * (time.monotonic() - start)
            break
        if into == "stores":
            assert same(cdd.load(target), array)
            target.unlink()
        else:
            with cdd.dataset.open(target) as ds:
                (column,) = ds.columns
                assert same(ds[column][:], array)
