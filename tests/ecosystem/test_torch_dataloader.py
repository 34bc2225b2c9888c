"""cdd.torch.dataset and Sampler in torch's DataLoader: every window is the array's, in whatever process."""

import gc
import multiprocessing
import pickle
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import cdd
from cdd.windows.order import Order
from tests.ecosystem.book_windows import BOOK, ROWS, TIME, books_in, check, windows_in

torch = pytest.importorskip("torch", exc_type=ImportError)
from torch.utils.data import DataLoader  # noqa: E402

import cdd.torch  # noqa: E402

METHODS = [m for m in ("fork", "spawn", "forkserver") if m in multiprocessing.get_all_start_methods()]
pytestmark = [
    pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning"),
    # torch's own, when a DataLoader pins memory without a GPU, and torchdata's use of what torch deprecates.
    pytest.mark.filterwarnings("ignore:.*pin_memory.*:UserWarning"),
    pytest.mark.filterwarnings("ignore:'set_vital' is deprecated:UserWarning"),
]


@pytest.fixture
def windows(tmp_path: Path) -> cdd.Windows:
    return windows_in(tmp_path)


@pytest.fixture
def books(tmp_path: Path) -> cdd.Windows:
    return books_in(tmp_path)


@pytest.mark.parametrize("collate", ["default", "whole"])
@pytest.mark.parametrize("decoded_before", [False, True])
@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("workers", [0, 2])
def test_workers_read_every_window(
    workers: int, method: str, decoded_before: bool, collate: str, windows: cdd.Windows
) -> None:
    if workers == 0 and method != METHODS[0]:
        return  # no process is started
    if decoded_before:
        windows.read(range(900))
    options: dict[str, Any] = {"multiprocessing_context": method} if workers else {}
    if collate == "whole":
        options["collate_fn"] = cdd.torch.whole
    sampler = cdd.torch.Sampler(windows, 97, seed=2, drop_last=False)
    loader = DataLoader(cdd.torch.dataset(windows), batch_sampler=sampler, num_workers=workers, **options)
    assert len(loader) == 11
    for epoch in range(2):
        for batch, numbers in zip(loader, Order(985, 97, seed=2, drop_last=False).epoch(epoch), strict=True):
            check(batch, numbers)


def centred(window: Any) -> Any:
    return window["book"] - window["book"].mean()


def test_a_transform_of_windows(windows: cdd.Windows) -> None:
    dataset = cdd.torch.dataset(windows, transform=centred)
    expected = torch.from_numpy(BOOK[5:21]) - torch.from_numpy(BOOK[5:21]).mean()
    assert torch.equal(dataset[5], expected)
    for collate in (None, cdd.torch.whole):
        for workers in (0, 2):
            loader = DataLoader(dataset, batch_size=10, collate_fn=collate, num_workers=workers)
            assert torch.equal(next(iter(loader))[5], expected)
    assert pickle.loads(pickle.dumps(dataset))[5].shape == (ROWS, 6, 3)


def test_what_else_takes_a_dataset(windows: cdd.Windows) -> None:
    dataset = cdd.torch.dataset(windows)
    one, two = torch.utils.data.random_split(dataset, [500, 485], torch.Generator().manual_seed(1))
    for part in (one, two, torch.utils.data.Subset(dataset, [9, 3])):
        for batch in DataLoader(part, batch_size=100):
            check(batch, np.searchsorted(TIME.view(np.int64), batch["time"][:, 0].numpy()))
    both = torch.utils.data.ConcatDataset([one, two])
    assert sum(len(batch["time"]) for batch in DataLoader(both, batch_size=100)) == 985


def test_whole_makes_no_copy(books: cdd.Windows) -> None:
    batch = cdd.torch.dataset(books).__getitems__([4, 5])
    assert cdd.torch.whole(batch) is batch.array
    assert batch[1].data_ptr() == batch.array[1].data_ptr()
    assert torch.equal(cdd.torch.whole([torch.ones(2), torch.zeros(2)]), torch.tensor([[1.0, 1], [0, 0]]))


@pytest.mark.parametrize("workers", [0, 2])
def test_a_stateful_dataloader_goes_on_at_each_batch(workers: int, windows: cdd.Windows) -> None:
    stateful = pytest.importorskip("torchdata.stateful_dataloader")

    def make() -> Any:
        return stateful.StatefulDataLoader(
            cdd.torch.dataset(windows),
            batch_sampler=cdd.torch.Sampler(windows, 200, seed=8),
            collate_fn=cdd.torch.whole,
            num_workers=workers,
        )

    unbroken = [batch["time"][:, 0].tolist() for loader in [make()] for _ in range(3) for batch in loader]
    assert len(unbroken) == 12
    for stop in range(1, 12, 1 if workers == 0 else 3):
        loader, seen = make(), []
        while len(seen) < stop:
            for batch in loader:
                seen.append(batch["time"][:, 0].tolist())
                if len(seen) == stop:
                    break
        resumed = make()
        resumed.load_state_dict(loader.state_dict())
        while len(seen) < 12:
            seen += [batch["time"][:, 0].tolist() for batch in resumed]
        assert seen == unbroken, stop


def test_bfloat16_and_times_as_tensors() -> None:
    ml_dtypes = pytest.importorskip("ml_dtypes")
    half = np.arange(6, dtype=ml_dtypes.bfloat16)
    assert torch.equal(cdd.torch.tensor(half), torch.arange(6, dtype=torch.bfloat16))
    assert cdd.torch.tensor(half).data_ptr() == half.ctypes.data
    assert cdd.torch.tensor(TIME[:3]).tolist() == TIME[:3].view(np.int64).tolist()
    assert cdd.torch.tensor(TIME[:3] - TIME[0]).dtype == torch.int64
    for name in ("u1", "i8", "u2", "f2", "f8", "c8", "?"):
        array = np.ones(3, name)
        assert cdd.torch.tensor(array).numpy().dtype == array.dtype


def test_no_warning_is_raised(windows: cdd.Windows) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for _ in cdd.torch.Loader(windows, 100):
            pass
        for _ in DataLoader(cdd.torch.dataset(windows), batch_size=100, collate_fn=cdd.torch.whole):
            pass
        gc.collect()


def test_errors_of_a_transform_name_the_window() -> None:
    windows = cdd.Windows(np.arange(100), 4)

    def fail(window: Any) -> Any:
        if int(window[0]) == 7:
            raise KeyError("x")
        return window

    def stop(window: Any) -> Any:
        raise StopIteration

    found = cdd.torch.dataset(windows, transform=fail)
    for ask in (lambda: found[7], lambda: found.__getitems__([5, 7, 9])):
        with pytest.raises(KeyError) as caught:
            ask()
        assert caught.value.__notes__ == ["in window 7"]
    with pytest.raises(RuntimeError, match="the transform raised StopIteration") as ended:
        list(cdd.torch.Loader(windows, 3, shuffle=False, transform=stop))
    assert ended.value.__notes__ == ["in a batch of 3 windows: 0, 1, 2"]
    with pytest.raises(RuntimeError, match="the transform raised StopIteration"):
        cdd.torch.dataset(windows, transform=stop)[0]


def test_arguments_of_an_order_and_states_of_others() -> None:
    windows = cdd.Windows(np.arange(100), 4)
    for kind in (cdd.torch.Loader, cdd.torch.Sampler):
        with pytest.raises(TypeError, match="seeds= is unknown: an order has seed, shuffle, near"):
            kind(windows, 3, seeds=1)
        with pytest.raises(ValueError, match="no state of batches: 'length' is missing"):
            kind(windows, 3).load_state_dict({"a": 1})


def test_tensors_are_members() -> None:
    windows = cdd.Windows({"x": torch.arange(12).reshape(6, 2), "y": np.arange(6)}, 2)
    assert windows.read([3])["x"].tolist() == [[[6, 7], [8, 9]]]
    assert windows[1:3].array["y"].tolist() == [[1, 2], [2, 3]]
