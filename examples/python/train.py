"""From books to a trained model: python3 dev.py demo train

Collects two symbols into datasets, takes windows of both, and trains a model to tell where the price goes,
with PyTorch where it is there. It stops in the middle of an epoch and goes on from what it saved, as after a
crash. Without PyTorch the same windows train a linear model of NumPy's.
"""

import json
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

import cdd
from cdd.windows import Order

ROWS, LEVELS, WINDOW, BATCH = 20_000, 10, 32, 256


def collect(path: Path, seed: int) -> None:
    """A generated book whose price goes away from the side with more in it."""
    random = np.random.default_rng(seed)
    pressure = np.tanh(np.convolve(random.normal(0, 1, ROWS), np.ones(100) / 10, "same"))
    side = np.repeat([1, -1], LEVELS // 2)
    sizes = random.uniform(1, 100, (ROWS, LEVELS)) * (1 + 0.8 * side * pressure[:, None])
    middle = 100 + np.cumsum(0.002 * pressure + random.normal(0, 0.002, ROWS))
    prices = middle[:, None] + (np.arange(LEVELS) - LEVELS / 2 + 0.5) / 100
    book = np.stack((prices, sizes), axis=2).astype(np.float32)
    time = np.datetime64("2026-01-01", "ms") + np.cumsum(random.integers(1, 200, ROWS))
    time[ROWS // 3 :] += 3_600_000  # an hour in which nothing was collected: no window goes over it
    after = np.concatenate((middle[8:], np.full(8, middle[-1])))
    with cdd.dataset.open(path, "w") as w:
        w.append(time=time, ob=book, up=(after > middle).astype(np.float32))


def inputs(batch: Any) -> Any:
    """Imbalance of each row of the windows: (windows, rows), of NumPy's or torch's arrays."""
    sizes = batch["ob"][..., 1]
    bids, asks = sizes[..., : LEVELS // 2].sum(-1), sizes[..., LEVELS // 2 :].sum(-1)
    return (bids - asks) / (bids + asks)


def train_numpy(windows: cdd.Windows) -> float:
    """Logistic regression; the share of the last batches that it tells right."""
    weights, right = np.zeros(WINDOW), []
    order = Order(len(windows), BATCH, seed=1)
    for epoch in range(3):
        for numbers in order.epoch(epoch):
            batch = windows.read(numbers)
            x, up = inputs(batch), batch["up"][:, -1]
            guess = 1 / (1 + np.exp(-x @ weights))
            weights -= 5 * x.T @ (guess - up) / BATCH
            right.append(((guess > 0.5) == up).mean())
    return float(np.mean(right[-20:]))


def train_torch(windows: cdd.Windows, saved: Path) -> float:
    """The same by a small network, stopped in the middle and resumed."""
    import torch

    import cdd.torch

    def made() -> tuple[Any, Any, Any]:
        torch.manual_seed(1)
        model = torch.nn.Sequential(torch.nn.Linear(WINDOW, 16), torch.nn.ReLU(), torch.nn.Linear(16, 1))
        return model, torch.optim.Adam(model.parameters(), 0.01), cdd.torch.Loader(windows, BATCH, seed=1)

    model, steps, loader = made()
    right: list[float] = []

    def step(batch: Any) -> None:
        logits, up = model(inputs(batch))[:, 0], batch["up"][:, -1]
        loss = torch.nn.functional.binary_cross_entropy_with_logits(logits, up)
        steps.zero_grad()
        loss.backward()
        steps.step()
        right.append(((logits > 0) == (up > 0)).float().mean().item())

    for count, batch in enumerate(loader):
        step(batch)
        if count == 40:
            break
    parts = {"model": model.state_dict(), "steps": steps.state_dict(), "loader": loader.state_dict()}
    torch.save(parts, saved)
    print(f"stopped and saved: {json.dumps(parts['loader'])}")

    model, steps, loader = made()
    kept = torch.load(saved)
    model.load_state_dict(kept["model"])
    steps.load_state_dict(kept["steps"])
    loader.load_state_dict(kept["loader"])  # the next batch is the one that would have come
    for _ in range(3):
        for batch in loader:
            step(batch)
    return float(np.mean(right[-20:]))


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        symbols = [Path(folder) / name for name in ("btc", "eth")]
        for seed, path in enumerate(symbols):
            collect(path, seed)
        windows = cdd.Windows(
            [cdd.dataset.open(path) for path in symbols],
            WINDOW,
            columns=("ob", "up"),
            max_gap=np.timedelta64(60, "s"),
        )
        print(windows)
        try:
            import torch  # noqa: F401
        except ImportError:
            print('no PyTorch here (pip install "cdd[torch]"): a linear model of NumPy')
            share = train_numpy(windows)
        else:
            share = train_torch(windows, Path(folder) / "model.pt")
        print(f"{share:.1%} of the last batches told right")
        assert share > 0.6


if __name__ == "__main__":
    main()
