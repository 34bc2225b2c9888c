"""cdd.torch.Loader: every batch is the array's, from whatever batch it goes on, and no thread is left."""

import gc
import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import cdd
from cdd.windows.order import Order
from tests.ecosystem.book_windows import BOOK, ROWS, TIME, books_in, check, windows_in

torch = pytest.importorskip("torch", exc_type=ImportError)
import cdd.torch  # noqa: E402

pytestmark = pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")


@pytest.fixture
def windows(tmp_path: Path) -> cdd.Windows:
    return windows_in(tmp_path)


@pytest.fixture
def books(tmp_path: Path) -> cdd.Windows:
    return books_in(tmp_path)


@pytest.fixture(autouse=True)
def threads_end() -> Iterator[None]:
    before = set(threading.enumerate())
    yield
    gc.collect()
    left = [t for t in set(threading.enumerate()) - before if t.name == "cdd-loader"]
    assert left == []


def test_each_batch_is_the_arrays(windows: cdd.Windows) -> None:
    loader = cdd.torch.Loader(windows, 32, seed=4)
    assert len(loader) == 985 // 32
    orders = []
    for epoch in range(3):
        numbers = list(Order(985, 32, seed=4).epoch(epoch))
        for batch, expected in zip(loader, numbers, strict=True):
            check(batch, expected)
        orders.append(np.concatenate(numbers).tolist())
    assert orders[0] != orders[1] != orders[2]
    plain = cdd.torch.Loader(windows, 400, shuffle=False, drop_last=False)
    seen = torch.cat([batch["time"][:, 0] for batch in plain])
    assert np.array_equal(seen.numpy(), TIME.view(np.int64)[:985])


def test_batches_are_fresh(books: cdd.Windows) -> None:
    kept = list(cdd.torch.Loader(books, 100, shuffle=False, prefetch=1))
    assert all(np.array_equal(batch[7].numpy(), BOOK[at * 100 + 7 :][:ROWS]) for at, batch in enumerate(kept))
    kept[0][:] = 0
    assert np.array_equal(kept[1][0].numpy(), BOOK[100:116])


def test_a_resumed_epoch_equals_an_unbroken_one_at_each_batch(windows: cdd.Windows) -> None:
    def make() -> Any:
        return cdd.torch.Loader(windows, 64, seed=8)

    unbroken = [batch["time"][:, 0].tolist() for loader in [make()] for _ in range(2) for batch in loader]
    assert len(unbroken) == 30
    for stop in range(30):
        loader, seen = make(), []
        while len(seen) < stop:
            for batch in loader:
                seen.append(batch["time"][:, 0].tolist())
                if len(seen) == stop:
                    break
        state = json.loads(json.dumps(loader.state_dict()))
        assert len(json.dumps(state)) <= 200
        resumed = make()
        resumed.load_state_dict(state)
        assert resumed.state_dict() == state
        while len(seen) < 30:
            seen += [batch["time"][:, 0].tolist() for batch in resumed]
        assert seen == unbroken, stop


def test_what_was_read_ahead_is_not_counted(books: cdd.Windows) -> None:
    loader = cdd.torch.Loader(books, 10, prefetch=50)
    batches = iter(loader)
    next(batches)
    time.sleep(0.2)
    assert loader.state_dict()["batch"] == 1
    del batches


def test_a_state_of_another_loader_is_an_error(books: cdd.Windows) -> None:
    state = cdd.torch.Loader(books, 10).state_dict()
    for other in (cdd.torch.Loader(books, 11), cdd.torch.Loader(books, 10, seed=1)):
        with pytest.raises(ValueError, match="the state was saved with"):
            other.load_state_dict(state)
    longer = cdd.Windows(books._groups[0].member(""), ROWS - 1)
    with pytest.raises(ValueError, match="saved with length 985, this one has 986"):
        cdd.torch.Loader(longer, 10).load_state_dict(state)


def test_ranks_cover_each_window_once(windows: cdd.Windows) -> None:
    seen = []
    for rank in range(2):
        loader = cdd.torch.Loader(windows, 41, rank=rank, world=2)
        assert len(loader) == 12
        seen += [n for batch in loader for n in batch["time"][:, 0].tolist()]
    assert len(seen) == len(set(seen)) == 984


def test_set_epoch_is_what_it_says(books: cdd.Windows) -> None:
    loader = cdd.torch.Loader(books, 100, seed=2)
    loader.set_epoch(5)
    five = [batch[:, 0, 0, 0].tolist() for batch in loader]
    assert loader.state_dict()["epoch"] == 6
    loader.set_epoch(5)
    assert [batch[:, 0, 0, 0].tolist() for batch in loader] == five
    loader.set_epoch(6)
    assert [batch[:, 0, 0, 0].tolist() for batch in loader] != five


def test_twenty_steps_of_training_end_in_the_weights_of_the_plain_array(windows: cdd.Windows) -> None:
    def trained(batches: Any) -> list[Any]:
        torch.manual_seed(0)
        model = torch.nn.Sequential(
            torch.nn.Flatten(), torch.nn.Linear(ROWS * 18, 8), torch.nn.ReLU(), torch.nn.Linear(8, 1)
        )
        steps = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
        for _, x in zip(range(20), batches, strict=False):
            loss = ((model(x)[:, 0] - x[:, -1, 0, 0]) ** 2).mean()
            steps.zero_grad()
            loss.backward()
            steps.step()
        return [p.detach().clone() for p in model.parameters()]

    loader = cdd.torch.Loader(windows, 32, seed=3)
    numbers = Order(985, 32, seed=3).epoch(0)
    rows = np.arange(ROWS)
    plain = trained(torch.from_numpy(BOOK[batch[:, None] + rows]) for batch in numbers)
    ours = trained(batch["book"] for batch in loader)
    assert all(torch.equal(a, b) for a, b in zip(plain, ours, strict=True))
    assert not torch.equal(ours[0], trained([torch.from_numpy(BOOK[:1, None].repeat(ROWS, 1))])[0])


def test_transform_runs_in_the_thread(windows: cdd.Windows) -> None:
    seen = set()

    def transform(batch: Any) -> Any:
        seen.add(threading.current_thread().name)
        return batch["book"][..., 0] - batch["book"][:, :1, :, 0], batch["time"]

    x, t = next(iter(cdd.torch.Loader(windows, 8, shuffle=False, transform=transform)))
    assert seen == {"cdd-loader"}
    assert np.array_equal(x[3].numpy(), BOOK[3:19, :, 0] - BOOK[3:4, :, 0])
    assert np.array_equal(t[3].numpy(), TIME[3:19].view(np.int64))


def test_a_transform_that_raises_arrives_with_the_windows(books: cdd.Windows) -> None:
    def transform(batch: Any) -> Any:
        if batch[0, 0, 0, 0] == BOOK[300, 0, 0]:
            raise ZeroDivisionError("of the transform")
        return batch

    loader = cdd.torch.Loader(books, 100, shuffle=False, transform=transform)
    seen = 0
    with pytest.raises(ZeroDivisionError, match="of the transform") as caught:
        for _ in loader:
            seen += 1
    assert seen == 3
    assert caught.value.__notes__ == [
        "in a batch of 100 windows: 300, 301, 302, 303, 304, 305, 306, 307, ..."
    ]
    assert "transform" in {frame.name for frame in caught.traceback}
    assert loader.state_dict()["batch"] == 3
    with pytest.raises(ZeroDivisionError):
        list(loader)


def test_damage_arrives_as_its_error(tmp_path: Path) -> None:
    path = tmp_path / "a.cdd"
    cdd.save(path, BOOK)
    content = bytearray(path.read_bytes())
    chunk = cdd.open(path).chunk_infos[2]
    content[chunk.offset + 60] ^= 1
    path.write_bytes(content)
    loader = cdd.torch.Loader(cdd.Windows(cdd.open(path), ROWS), 100)
    with pytest.raises(cdd.ChecksumError) as caught:
        list(loader)
    assert caught.value.__notes__[0].startswith("in a batch of 100 windows: ")


def test_an_abandoned_iteration_ends_its_thread(books: cdd.Windows) -> None:
    before = threading.active_count()
    loader = cdd.torch.Loader(books, 10, prefetch=1)
    for _ in loader:
        break
    assert threading.active_count() == before
    batches = iter(loader)
    next(batches)
    assert threading.active_count() == before + 1
    cycle: list[Any] = [batches]
    cycle.append(cycle)
    del batches, cycle
    gc.collect()
    assert threading.active_count() == before
    iter(loader)  # never asked for a batch
    assert threading.active_count() == before


def test_a_thread_that_is_left_at_exit_hangs_nothing(tmp_path: Path) -> None:
    cdd.save(tmp_path / "a.cdd", BOOK)
    script = """if True:
        import sys, cdd, cdd.torch
        batches = iter(cdd.torch.Loader(cdd.Windows(cdd.open(sys.argv[1]), 16), 10))
        next(batches)
        sys.modules["__main__"].kept = batches
    """
    command = [sys.executable, "-P", "-W", "error", "-c", script, str(tmp_path / "a.cdd")]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, env=environment)
    assert (done.returncode, done.stderr) == (0, "")


def test_many_epochs_hold_no_memory_and_no_threads(books: cdd.Windows) -> None:
    resource = pytest.importorskip("resource")
    loader = cdd.torch.Loader(books, 100)
    before = threading.active_count()
    for epoch in range(200):
        for _ in loader:
            if epoch % 3 == 0:
                break
        if epoch == 50:
            grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    assert threading.active_count() == before
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss < grown + 8192


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this system")
def test_an_iteration_goes_on_in_a_forked_child(windows: cdd.Windows) -> None:
    loader = cdd.torch.Loader(windows, 50, seed=1)
    numbers = list(Order(985, 50, seed=1).epoch(0))
    batches = iter(loader)
    check(next(batches), numbers[0])
    child = os.fork()
    if child == 0:
        code = 1
        try:
            for expected in numbers[1:]:
                check(next(batches), expected)
            assert next(batches, None) is None
            assert len(list(loader)) == 19
            code = 0
        finally:
            os._exit(code)
    for expected in numbers[1:]:
        check(next(batches), expected)
    assert next(batches, None) is None
    for _ in range(600):
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            break
        time.sleep(0.1)
    else:
        os.kill(child, 9)
        os.waitpid(child, 0)
        pytest.fail("the child hung")
    assert os.waitstatus_to_exitcode(status) == 0


def test_devices(books: cdd.Windows) -> None:
    batch = next(iter(cdd.torch.Loader(books, 10, device="meta")))
    assert batch.device.type == "meta"
    assert batch.shape == (10, ROWS, 6, 3)
    assert next(iter(cdd.torch.Loader(books, 10, device="cpu"))).device.type == "cpu"
    with pytest.raises(RuntimeError, match="device type"):
        cdd.torch.Loader(books, 10, device="nonsense")
    if not torch.cuda.is_available():
        with pytest.raises((RuntimeError, AssertionError)):
            cdd.torch.Loader(books, 10, device="cuda")


def test_pinned_memory_is_read_into(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """With the allocation alone replaced where there is no GPU."""
    ml_dtypes = pytest.importorskip("ml_dtypes")
    half = BOOK[:, 0, 0].astype(ml_dtypes.bfloat16)
    members = {"book": BOOK, "time": TIME}
    with cdd.dataset.open(tmp_path / "d", "w") as w:
        w.append(**members, half=half)
    made, empty = [], torch.empty

    def pinned(*arguments: Any, pin_memory: bool = False, **options: Any) -> Any:
        found = empty(*arguments, **options)
        if pin_memory:
            made.append(found)
        return found

    monkeypatch.setattr(torch, "empty", pinned)
    source = cdd.Windows(cdd.dataset.open(tmp_path / "d"), ROWS)
    batch = next(iter(cdd.torch.Loader(source, 10, shuffle=False, pin_memory=True, prefetch=1)))
    assert {t.data_ptr() for t in batch.values()} <= {t.data_ptr() for t in made}
    check(batch, np.arange(10))
    assert batch["half"].dtype == torch.bfloat16
    assert np.array_equal(
        batch["half"][4].view(torch.int16).numpy().view(np.uint16), half[4:20].view(np.uint16)
    )


def test_bad_arguments_are_errors(books: cdd.Windows) -> None:
    with pytest.raises(ValueError, match="prefetch is 0"):
        cdd.torch.Loader(books, 10, prefetch=0)
    with pytest.raises(ValueError, match="no whole batch"):
        cdd.torch.Loader(books, 1000)
    with pytest.raises(ValueError, match="epoch is -1"):
        cdd.torch.Loader(books, 10).set_epoch(-1)
    for made in (cdd.torch.Loader, cdd.torch.dataset):
        size = (10,) if made is cdd.torch.Loader else ()
        with pytest.raises(TypeError, match=r"windows are a cdd\.Windows, not an array"):
            made(np.zeros((10, 3)), *size)
        with pytest.raises(TypeError, match="transform is called with windows, 3 cannot be called"):
            made(books, *size, transform=3)
    with pytest.raises(TypeError, match=r"a state is what state_dict\(\) gives, not None"):
        cdd.torch.Loader(books, 10).load_state_dict(None)
