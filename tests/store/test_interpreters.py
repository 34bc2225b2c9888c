"""Interpreters with a GIL each, and one without: module slots, and threads that nothing holds apart."""

import importlib
import os
import shutil
import subprocess
import sys
import sysconfig
import threading
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import cdd

FREE_THREADED = bool(sysconfig.get_config_var("Py_GIL_DISABLED"))

# NumPy does not load in a sub-interpreter, the core's module does.
SUB_INTERPRETER = f"""
import importlib.util
spec = importlib.util.spec_from_file_location("cdd._cdd", {cdd._cdd.__file__!r})
core = importlib.util.module_from_spec(spec)
spec.loader.exec_module(core)
class Future:
    value = error = None
    def done(self): return self.value is not None or self.error is not None
    def set_result(self, value): self.value = value
    def set_exception(self, error): self.error = error
for _ in range(20):
    memory = core.Memory()
    writer = core.Writer(memory, "w", {{"layout": (8, ())}})
    writer.append(8, memoryview(bytes(range(80))).cast("q"), 0)
    writer.close()
    out = bytearray(80)
    reader = core.Reader(memory, {{"check": "full"}})
    reader.read_into(0, 10, out)
    assert out == bytes(range(80))
    queue, futures = core.Queue(), [Future() for _ in range(8)]
    others = [bytearray(80) for _ in futures]
    for future, other in zip(futures, others):
        queue.read(reader, future, other, 0, 10, other)
    while not all(future.done() for future in futures):
        queue.wait(1000)
        queue.resolve()
    assert all(future.value is other and other == out for future, other in zip(futures, others))
try:
    core.Reader(b"", {{}})
except core.TruncatedError:
    pass
"""


def run_in_sub_interpreter(code: str) -> object:
    """None, or what went wrong in a new interpreter with a GIL of its own."""
    if sys.version_info >= (3, 13):
        module = importlib.import_module("_interpreters")
        made = module.create()
        try:
            return module.exec(made, code)
        finally:
            module.destroy(made)
    module = importlib.import_module("_xxsubinterpreters")
    made = module.create(isolated=True)
    try:
        return module.run_string(made, code)  # raises what the code raises
    finally:
        module.destroy(made)


def in_threads(work: Callable[[int], object], count: int) -> list[object]:
    """What work(i) returned or raised in `count` threads that begin together."""
    results: list[object] = [None] * count
    start = threading.Barrier(count)

    def run(i: int) -> None:
        start.wait()
        try:
            results[i] = work(i)
        except BaseException as error:
            results[i] = error

    running = [threading.Thread(target=run, args=(i,)) for i in range(count)]
    for thread in running:
        thread.start()
    for thread in running:
        thread.join()
    return results


@pytest.mark.skipif(sys.version_info < (3, 12), reason="interpreters share the GIL before 3.12")
@pytest.mark.parametrize("count", [1, 4])
def test_sub_interpreters_with_a_gil_of_their_own(count: int) -> None:
    assert in_threads(lambda _: run_in_sub_interpreter(SUB_INTERPRETER), count) == [None] * count


@pytest.mark.parametrize("version", ["3.12", "3.13", "3.14"])
def test_sub_interpreters_of_later_pythons_that_are_here(version: str) -> None:
    """One module serves all versions from 3.11 on; only later ones have GILs of their own."""
    if not Path(str(cdd._cdd.__file__)).name.startswith("_cdd.abi3"):
        pytest.skip("the module is for one version of Python")
    beside = sorted(Path(sys.base_prefix).parent.glob(f"{version}.*/bin/python"))  # as pyenv has them
    runs_code = [
        one
        for one in (*filter(None, [shutil.which(f"python{version}")]), *map(str, beside))
        if subprocess.run([one, "-c", ""], capture_output=True, check=False).returncode == 0
    ]
    if not runs_code:
        pytest.skip(f"there is no Python {version}")
    made, runs = ("import _xxsubinterpreters as i; one = i.create(isolated=True)", "i.run_string(one, code)")
    if version != "3.12":
        made = "import _interpreters as i; one = i.create()"
        runs = "wrong = i.exec(one, code); assert not wrong, wrong"
    code = f"{made}; code = {SUB_INTERPRETER!r}; {runs}; i.destroy(one)"
    done = subprocess.run([runs_code[0], "-I", "-c", code], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


# Where NumPy loads, so does all of cdd; where it does not, its ImportError is ours.
WHOLE_PACKAGE = """
import asyncio
try:
    import numpy as np
    refused = None
except ImportError as error:
    refused = str(error)
try:
    import cdd
    from cdd import aio
except ImportError as error:
    assert refused is not None, error
    print("refused", flush=True)
else:
    assert refused is None
    rows = np.arange(3000.0).reshape(1000, 3)
    memory = cdd.Memory()
    with cdd.open(memory, "w") as w:
        w.append(rows)
    r = cdd.open(memory)
    assert np.array_equal(r[10:20], rows[10:20])
    async def main():
        assert np.array_equal(await r.aread(10, 20), rows[10:20])
        out = np.empty((20, 3))
        for _ in range(50):
            await aio.done(lambda queue, future: queue.read(r._core, future, out, 7, 20, out))
        assert np.array_equal(out, rows[7:27])
        assert np.array_equal(await r.aread_windows([1, 2], 20), np.stack([rows[1:21], rows[2:22]]))
    asyncio.run(main())
    print("works", flush=True)
"""
RUN_IN_SUB_INTERPRETER = """
import sys
if sys.argv[1] == "second":
    import numpy
if sys.version_info >= (3, 13):
    import _interpreters as module
    one = module.create(sys.argv[2])
    wrong = module.exec(one, sys.argv[3])
    assert wrong is None, wrong
else:
    import _xxsubinterpreters as module
    one = module.create(isolated=sys.argv[2] == "isolated")
    module.run_string(one, sys.argv[3])
module.destroy(one)
"""


@pytest.mark.parametrize("kind", ["legacy", "isolated"])
@pytest.mark.parametrize("which", ["first", "second"])
def test_the_package_in_a_sub_interpreter_works_or_is_an_import_error(which: str, kind: str) -> None:
    """`which` interpreter of its process it is that loads NumPy."""
    command = [sys.executable, "-P", "-W", "ignore", "-c", RUN_IN_SUB_INTERPRETER, which, kind, WHOLE_PACKAGE]
    env = os.environ | {"PYTHONPATH": os.pathsep.join([str(Path(cdd.__file__).parent.parent), *sys.path])}
    done = subprocess.run(command, env=env, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout in ("works\n", "refused\n")


@pytest.mark.skipif(not FREE_THREADED, reason="this Python always has a GIL")
def test_importing_cdd_leaves_the_gil_off() -> None:
    code = "import sys, cdd; sys.exit(sys._is_gil_enabled())"
    env = os.environ | {"PYTHONPATH": os.pathsep.join([str(Path(cdd.__file__).parent.parent), *sys.path])}
    env.pop("PYTHON_GIL", None)
    assert (
        subprocess.run([sys.executable, "-P", "-W", "error", "-c", code], env=env, check=False).returncode
        == 0
    )


def test_threads_append_to_one_writer_while_others_follow() -> None:
    memory = cdd.Memory()
    appends, writers, readers = 150, 3, 3
    open_writer = cdd.open(memory, "w", chunk_rows=8, dtype=np.int64, row_shape=(2,), durability="none")
    done = threading.Event()

    def append(thread: int) -> None:
        for i in range(appends):
            open_writer.append(np.full((5, 2), thread * appends + i, np.int64))
            if i % 10 == 0:
                open_writer.flush()
            assert len(open_writer) >= (i + 1) * 5

    def follow(_: int) -> None:
        reader = cdd.open(memory)
        seen = 0
        while not done.is_set():
            reader.refresh()
            assert len(reader) >= seen
            seen = len(reader)
            rows = reader[:]
            assert (rows[:, 0] == rows[:, 1]).all()

    def work(i: int) -> None:
        if i >= writers:
            return follow(i)
        try:
            append(i)
        finally:  # a failed writer is not to leave the readers waiting
            with lock:
                left.pop()
                if not left:
                    done.set()
        return None

    lock, left = threading.Lock(), list(range(writers))
    assert in_threads(work, writers + readers) == [None] * (writers + readers)
    open_writer.close()
    rows = cdd.open(memory)[:]
    values, counts = np.unique(rows[:, 0], return_counts=True)
    assert values.tolist() == list(range(appends * writers))
    assert (counts == 5).all()
    assert (rows.reshape(-1, 5, 2) == rows.reshape(-1, 5, 2)[:, :1]).all(), "an append is never torn"


def test_threads_share_close_and_reopen_one_reader(tmp_path: Path) -> None:
    rows = np.random.default_rng(3).random((5000, 4))
    cdd.save(tmp_path / "a.cdd", rows, chunk_rows=32)
    shared = [cdd.open(tmp_path / "a.cdd")]

    def work(i: int) -> None:
        rng = np.random.default_rng(i)
        for _ in range(200):
            reader = shared[0]
            start = int(rng.integers(0, 4900))
            try:
                assert np.array_equal(reader[start : start + 100], rows[start : start + 100])
                starts = rng.integers(0, 4900, 5)
                assert np.array_equal(reader.read_windows(starts, 64)[2], rows[starts[2] :][:64])
            except ValueError as error:
                assert "closed" in str(error)
            if rng.random() < 0.1:
                shared[0] = cdd.open(tmp_path / "a.cdd")
                reader.close()

    assert in_threads(work, 6) == [None] * 6
