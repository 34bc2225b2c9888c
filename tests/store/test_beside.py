"""cdd in a process with packages that bring a zstd, LZ4, TBB or OpenMP of their own, before or after it."""

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import cdd

# What each does with the libraries it shares with cdd, before and after cdd has used its own.
WORK = {
    "pyarrow": """
import pyarrow
def other():
    for name in ("zstd", "lz4"):
        codec = pyarrow.Codec(name)
        assert codec.decompress(codec.compress(bytes(99_999)), 99_999, asbytes=True) == bytes(99_999)
    assert pyarrow.compute.sum(pyarrow.array(range(100_000))).as_py() == 4_999_950_000
import pyarrow.compute
""",
    "torch": """
import torch
def other():
    a = torch.arange(90_000, dtype=torch.float64).reshape(300, 300)
    assert torch.equal(a @ torch.eye(300, dtype=torch.float64), a)
""",
    "numba": """
import os
import numba
@numba.njit(parallel=True)
def total(n):
    s = 0
    for i in numba.prange(n):
        s += i
    return s
def other():
    assert total(100_000) == 4_999_950_000
    assert numba.threading_layer() == os.environ.get("NUMBA_THREADING_LAYER", numba.threading_layer())
""",
}
CDD = """
import sys
import numpy as np
import cdd
cdd.set_threads(2)
def ours():
    for path in sys.argv[1:]:
        reader = cdd.open(path)
        assert np.array_equal(reader[:], np.load(path + ".npy"))
        starts = np.arange(0, len(reader) - 64, 61)
        assert np.array_equal(reader.read_windows(starts, 64)[-1], reader[int(starts[-1]) :][:64])
    memory = cdd.Memory()
    cdd.save(memory, np.arange(300_000), codec="zstd")
    assert np.array_equal(cdd.load(memory), np.arange(300_000))
"""


@pytest.mark.parametrize("first", ["cdd", "other"])
@pytest.mark.parametrize("name", WORK)
def test_both_work_in_one_process(tmp_path: Path, name: str, first: str) -> None:
    if importlib.util.find_spec(name) is None:
        pytest.skip(f"{name} is not installed")
    rng = np.random.default_rng(1)
    book = np.repeat(rng.integers(1, 999, (300, 50, 3)), 20, axis=0).astype(np.float32) / 8
    book[:, 7, 1] = rng.random(len(book))
    paths = []
    for codec in ("auto", "zstd", "lz4"):
        paths.append(str(tmp_path / f"{codec}.cdd"))
        cdd.save(paths[-1], book, codec=codec)
        np.save(paths[-1] + ".npy", book)
    parts = [CDD, WORK[name]]
    script = "\n".join(parts if first == "cdd" else parts[::-1])
    script += "\nfor _ in range(3):\n    ours()\n    other()\n"
    layer = {"NUMBA_THREADING_LAYER": "tbb"} if importlib.util.find_spec("tbb") else {}
    env = os.environ | layer | {"NUMBA_NUM_THREADS": "2"}
    env["PYTHONPATH"] = os.pathsep.join([str(Path(cdd.__file__).parent.parent), *sys.path])
    command = [sys.executable, "-P", "-c", script, *paths]
    done = subprocess.run(command, capture_output=True, text=True, env=env, timeout=300, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
