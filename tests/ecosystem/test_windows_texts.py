"""Windows of text columns are codes, which mean the same in all members of a sequence, or it is refused."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import cdd

TIME = np.arange(4).astype("M8[s]")


def made(path: Path, texts: list[str]) -> Any:
    with cdd.dataset.open(path, "w") as w:
        w.append(time=TIME, x=np.arange(4), side=np.array(texts, object))
        w["trades"].append(time=TIME, side=np.array(texts, object))
    return cdd.dataset.open(path)


@pytest.fixture
def several(tmp_path: Path) -> list[Any]:
    return [
        made(tmp_path / "a", ["buy", "buy", "sell", "buy"]),
        made(tmp_path / "b", ["sell", "buy", "buy", "buy"]),
        made(tmp_path / "c", ["buy", "sell", "late", "sell"]),
    ]


@pytest.mark.parametrize(
    ("options", "name"),
    [
        ({"columns": ("side",)}, "side"),
        ({"columns": "side"}, ""),
        ({"columns": ("x",), "asof": {"trades": ("side",)}}, "trades/side"),
    ],
)
def test_other_codes_are_refused(several: list[Any], options: dict[str, Any], name: str) -> None:
    a, b, c = several
    with pytest.raises(
        ValueError, match=f"text column '{name}': code 0 is 'sell' in .*, 'buy' in .*same codes"
    ):
        cdd.Windows([a, b], 1, **options)
    windows = cdd.Windows([a, c], 1, **options)
    assert windows.categories == {name: ["buy", "sell", "late"]}
    read = windows.read(range(8))
    codes = (read if isinstance(read, np.ndarray) else read[name]).ravel().tolist()
    assert [windows.categories[name][code] for code in codes] == [
        "buy", "buy", "sell", "buy", "buy", "sell", "late", "sell",
    ]  # fmt: skip


def test_members_of_mappings_too(several: list[Any]) -> None:
    a, b, _ = several
    with pytest.raises(ValueError, match="text column 's': code 0"):
        cdd.Windows([{"s": a["side"]}, {"s": b["side"]}], 1)
    assert cdd.Windows([a, b], 1, columns=("x",)).categories == {}, "a column that is not read does no harm"
    code = {"buy": 0, "sell": 1}
    own = [np.array([code[text] for text in ds["side"].text()]) for ds in (a, b)]
    windows = cdd.Windows([{"x": ds["x"], "side": side} for ds, side in zip((a, b), own, strict=True)], 1)
    assert windows.read(range(8))["side"].ravel().tolist() == [0, 0, 1, 0, 1, 0, 0, 0]


def test_texts_that_come_later_are_looked_at(several: list[Any], tmp_path: Path) -> None:
    a, _, c = several
    windows = cdd.Windows([a, c], 1, columns=("side",))
    with cdd.dataset.open(tmp_path / "a", "a") as w:
        w.append(time=TIME[-1:], x=[1], side=["other"])
    with pytest.raises(ValueError, match="text column 'side': code 2"):
        windows.refresh()
