"""The way of docs/training.md from a folder of zarr books to a trained model."""

from pathlib import Path

import numpy as np
import pytest

import cdd

torch = pytest.importorskip("torch", exc_type=ImportError)
zarr = pytest.importorskip("zarr", exc_type=ImportError)
migrate = pytest.importorskip("cdd.migrate", exc_type=ImportError)
import cdd.torch  # noqa: E402


def test_a_folder_of_zarr_books_becomes_a_model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    books = {
        name: np.random.default_rng(len(name)).random((900, 10, 2)).astype("f4") for name in ("btc", "doge")
    }
    for name, book in books.items():
        array = zarr.create_array(f"archive/{name}.zarr", shape=book.shape, chunks=(100, 10, 2), dtype="f4")
        array[:] = book

    migrate.migrate("archive", "stores")
    paths = sorted(Path("stores").glob("*.cdd"))
    assert [path.stem for path in paths] == list(books)
    windows = cdd.Windows([cdd.open(path) for path in paths], 64)

    assert len(windows) == 2 * 837
    torch.manual_seed(0)
    model = torch.nn.Linear(20, 1)
    steps = torch.optim.SGD(model.parameters(), lr=0.05)
    losses = []
    for _ in range(20):
        for batch in cdd.torch.Loader(windows, 128, seed=1):
            loss = (model(batch[:, -1].flatten(1))[:, 0] - batch[:, -1, 0, 0]).square().mean()
            steps.zero_grad()
            loss.backward()
            steps.step()
            losses.append(loss.item())
    assert np.mean(losses[-5:]) < 0.25 * np.var(books["btc"][:, 0, 0])  # what guessing the mean leaves
    number = 837 + 5
    member, row = windows.where(number)
    assert np.array_equal(windows[number], books["doge"][5:69])
    assert (member, row) == (1, 5)
