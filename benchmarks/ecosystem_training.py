"""Batches of windows for training: cdd.torch beside DataLoader over a memory map and over zarr 3.

Batches of 256 windows of 64 rows of a recorded book (200,000 rows), in a random order. All take turns in each
of ROUNDS rounds; the median of the rounds counts. The first batch is of 10^9 windows of rows without memory.
"""

import json
import pickle
import resource
import statistics
import tempfile
import time
import tracemalloc
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch
import zarr
from arrays import arrays, load_array, recordings
from goals import Goal
from torch.utils.data import DataLoader, Dataset

import cdd
import cdd.torch

ROWS, WINDOW, BATCH = 200_000, 64, 256
ROUNDS = 4
Batches = Callable[[], Iterator[Any]]


class OneByOne(Dataset):
    """Windows of what has []: what one writes without cdd."""

    def __init__(self, opened: Callable[[], Any]) -> None:
        self._opened = opened
        self._array: Any = None

    def __len__(self) -> int:
        return ROWS - WINDOW + 1

    def __getitem__(self, number: int) -> Any:
        if self._array is None:
            self._array = self._opened()
        return torch.from_numpy(np.array(self._array[number : number + WINDOW]))


def book() -> np.ndarray:
    folder = recordings()
    if folder is not None:
        return load_array(folder / "okx_ethusd_tick.npz", ROWS)
    return next(array for _, array in arrays("lob", ROWS))[:ROWS]


def speed(batches: Iterator[Any], count: int) -> tuple[float, float]:
    """Windows a second, and CPU seconds of this process for a window."""
    next(batches)  # processes and threads are there
    since, cpu = time.perf_counter(), time.process_time()
    for _ in range(count):
        next(batches)
    windows = count * BATCH
    return windows / (time.perf_counter() - since), (time.process_time() - cpu) / windows


def ways(folder: Path) -> dict[str, tuple[Batches, int]]:
    """(what begins an epoch, batches that are timed) of each."""
    reader = cdd.open(folder / "b.cdd")
    windows = cdd.Windows(reader, WINDOW)
    out = torch.empty((BATCH, WINDOW, *reader.shape[1:]))

    def bare() -> Iterator[Any]:
        for numbers in cdd.windows.Order(len(windows), BATCH, seed=1).epoch(0):
            yield reader.read_windows(numbers, WINDOW, out)

    def part() -> Iterator[Any]:
        for numbers in cdd.windows.Order(len(windows), BATCH, seed=1).epoch(0):
            yield reader.read_windows(numbers, WINDOW, levels=slice(20, 30), features=slice(2))

    def by_dataloader(dataset: Any, workers: int, **options: Any) -> Batches:
        return lambda: iter(DataLoader(dataset, BATCH, shuffle=True, num_workers=workers, **options))

    memmap = OneByOne(lambda: np.load(folder / "b.npy", mmap_mode="r"))
    in_zarr = OneByOne(lambda: zarr.open_array(folder / "b.zarr", mode="r"))
    sampler = cdd.torch.Sampler(windows, BATCH, seed=1)
    ours = cdd.torch.dataset(windows)
    return {
        "loader": (lambda: iter(cdd.torch.Loader(windows, BATCH, seed=1)), 60),
        "bare": (bare, 60),
        "10 levels x 2 features": (part, 60),
        "memmap": (by_dataloader(memmap, 0), 60),
        "memmap2": (by_dataloader(memmap, 2), 40),
        "zarr": (by_dataloader(in_zarr, 0), 2),
        "dataset": (lambda: iter(DataLoader(ours, batch_sampler=sampler)), 60),
    }


def speeds() -> tuple[dict[str, float], dict[str, float]]:
    """Windows a second and CPU seconds of a window, by way."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        array = book()
        cdd.save(folder / "b.cdd", array)
        np.save(folder / "b.npy", array)
        shape = (256, *array.shape[1:])
        zarr.create_array(folder / "b.zarr", shape=array.shape, chunks=shape, dtype=array.dtype)[:] = array
        found: dict[str, list[tuple[float, float]]] = {}
        for _ in range(ROUNDS):
            for way, (begin, count) in ways(folder).items():
                found.setdefault(way, []).append(speed(begin(), count))
        return (
            {way: statistics.median(rate for rate, _ in each) for way, each in found.items()},
            {way: statistics.median(cpu for _, cpu in each) for way, each in found.items()},
        )


def first_batch() -> tuple[float, float, float]:
    """Milliseconds and megabytes until the first batch of 10^9 windows; bytes of the state."""
    rows = np.lib.stride_tricks.as_strided(np.zeros(8, np.float32), (10**9 + WINDOW - 1, 8), (0, 4))
    best = float("inf")
    for _ in range(5):
        since = time.perf_counter()
        next(iter(cdd.torch.Loader(cdd.Windows(rows, WINDOW), BATCH, prefetch=1)))
        best = min(best, time.perf_counter() - since)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    tracemalloc.start()
    loader = cdd.torch.Loader(cdd.Windows(rows, WINDOW), BATCH, prefetch=1)
    next(iter(loader))
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) * 1024
    state = loader.state_dict()
    return best * 1e3, max(most, grown) / 1e6, float(max(len(json.dumps(state)), len(pickle.dumps(state))))


def measure() -> Iterator[Goal]:
    warnings.simplefilter("ignore")  # of processes that are forked beside threads
    milliseconds, megabytes, state = first_batch()
    yield Goal("first batch of 10^9 windows", milliseconds, "ms", at_most=50)
    yield Goal("memory until then", megabytes, "MB", at_most=10)
    yield Goal("state_dict(), JSON and pickle", state, "bytes", at_most=200)
    found, cpu = speeds()
    loader = found["loader"]
    yield Goal(
        "Loader / DataLoader over np.memmap, 0 workers",
        loader / found["memmap"],
        "x",
        at_least=1.5,
        others=found,
    )
    yield Goal("Loader / DataLoader over np.memmap, 2 workers", loader / found["memmap2"], "x", at_least=4)
    yield Goal("Loader / DataLoader over zarr 3", loader / found["zarr"], "x", at_least=50)
    yield Goal("Loader / bare loop of read_windows(out=)", loader / found["bare"], "x", at_least=0.7)
    microseconds = {way: seconds * 1e6 for way, seconds in cpu.items() if way != "memmap2"}
    by_cpu = cpu["dataset"] / cpu["memmap"]
    yield Goal("CPU of dataset() / memmap in DataLoader", by_cpu, "x", at_most=0.8, others=microseconds)
    of_part = cpu["10 levels x 2 features"] / cpu["bare"]
    yield Goal("CPU of 10 levels x 2 features / whole rows", of_part, "x", at_most=0.85)
