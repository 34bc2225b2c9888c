"""The code of docs/training.md runs as it stands, on a dataset that is there."""

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import cdd

torch = pytest.importorskip("torch", exc_type=ImportError)
PAGE = Path(__file__).resolve().parent.parent.parent / "docs/training.md"
ROWS = 700


def test_code_of_the_page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    random = np.random.default_rng(0)
    book = random.random((ROWS, 50, 3)).astype(np.float32)
    time = np.cumsum(random.integers(1, 100, ROWS)).astype("M8[ms]")
    with cdd.dataset.open("btc", "w") as w:
        w.append(time=time, ob=book, mid=book[:, 24, 0], side=["sell", "buy"] * (ROWS // 2))
    model = torch.nn.Linear(1, 1)
    seen: list[Any] = []

    def step(ob: Any, mid: Any) -> None:
        assert ob.shape == (256, 64, 50, 3)
        assert mid.shape == (256, 64)
        assert torch.equal(ob[:, :, 24, 0], mid)
        seen.append(ob)

    names: dict[str, Any] = {"model": model, "step": step, "augment": lambda window: window["mid"]}
    names["paths"] = ["btc", "btc"]
    for block in re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL):
        if "lightning" not in block:  # which test_lightning.py runs
            exec(block, names)
    assert len(seen) == 3 * 2
    assert names["coded"][0]["side"].tolist() == [1, 0] * 32
    assert sorted(torch.load("model.pt")) == ["loader", "model"]
    assert next(iter(names["loader"])).shape == (256, 64)
    assert names["batch"]["ob"].shape == (256, 64, 50, 3)
