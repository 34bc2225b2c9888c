"""The Python of README.md and docs/store.md runs as it stands there."""

import re
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import cdd

ROOT = Path(__file__).resolve().parent.parent.parent
BOOKS = np.cumsum(np.random.default_rng(1).integers(-1, 2, (6000, 50, 3)), axis=0).astype(np.float32)


def blocks(page: str) -> list[str]:
    path = ROOT / page
    if not path.exists():
        pytest.skip(f"{page} is not here")
    return re.findall(r"```python\n(.*?)```", path.read_text(encoding="utf-8"), re.DOTALL)


@pytest.fixture
def names(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """What the pages take for granted."""
    monkeypatch.chdir(tmp_path)
    return {"np": np, "cdd": cdd, "time": time, "books": BOOKS, "more_books": BOOKS, "a": 3, "b": 9,
            "starts": np.arange(0, 6000, 64), "mask": np.arange(12000) % 7 == 0}  # fmt: skip


def test_readme(names: dict[str, Any]) -> None:
    (block,) = blocks("README.md")
    exec(block, names)
    assert np.array_equal(names["window"], np.concatenate([BOOKS, BOOKS])[10_000:10_064])
    assert np.array_equal(names["buffer"], names["window"])
    assert names["batch"].shape == (94, 64, 50, 3)
    names["w"].close()
    names["r"].close()


def test_the_page_of_the_store(names: dict[str, Any], tmp_path: Path) -> None:
    writing, reading, following = blocks("docs/store.md")
    cdd.save("btc.cdd", BOOKS)
    exec(writing.replace('"w")', '"a")'), names)
    assert len(cdd.load("btc.cdd")) == 12_000
    exec(reading, names)
    assert np.array_equal(names["buffer"], np.concatenate([BOOKS, BOOKS])[10_000:10_064])
    names["r"].close()

    seen: list[np.ndarray] = []
    names["use"] = seen.append
    with cdd.open("today.cdd", "w") as writer:
        writer.append(BOOKS)
        follower = threading.Thread(target=exec, args=(following, names))
        follower.start()
        writer.append(BOOKS)
        writer.flush()
        for _ in range(3000):
            if sum(map(len, seen)) == 2 * len(BOOKS):
                break
            time.sleep(0.01)
    cdd.save("today.cdd", BOOKS[:1])
    follower.join(30)
    assert not follower.is_alive()
    assert np.array_equal(np.concatenate(seen), np.concatenate([BOOKS, BOOKS]))
    names["r"].close()
