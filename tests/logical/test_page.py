"""docs/logical.md does what it says: its Python runs, and an archive moves region by region."""

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import cdd

zarr = pytest.importorskip("zarr")
pytest.importorskip("icechunk")

PAGE = Path(__file__).resolve().parent.parent.parent / "docs" / "logical.md"
YEARS = np.round(np.random.default_rng(0).normal(100, 1, (3, 4000, 50, 3)), 1).astype(np.float32)


def archive(path: str, values: np.ndarray) -> None:
    made = zarr.create_array(path, shape=values.shape, dtype="f4", chunks=(500, 50, 3))
    made[:] = values


def blocks() -> list[str]:
    found = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    assert len(found) == 2
    return found


def test_the_python_of_the_page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    archive("2024.zarr", YEARS[0])
    cdd.save("2026.cdd", YEARS[2])
    names: dict[str, Any] = {"books_2025": YEARS[1]}
    exec(blocks()[0], names)
    assert np.array_equal(names["a"][:], np.concatenate(list(YEARS)))


def test_the_page_moves_an_archive(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "archive").mkdir()
    for number in range(3):
        archive(f"archive/{2023 + number}.zarr", YEARS[number])
    exec(blocks()[1], {"cdd": cdd})
    assert "all is well, 3 members, 7,200,000 bytes read" in capsys.readouterr().out
    array = cdd.logical.open("repo")
    assert {member.kind for member in array.manifest.members} == {"cdd"}
    assert np.array_equal(array[:], np.concatenate(list(YEARS)))


def test_moving_a_zarr_archive(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    expected = np.concatenate(list(YEARS))
    with cdd.logical.transaction("repo", "the archive as it is", create=True) as t:
        a = t.create("books", shape=(0, 50, 3), dtype="f4")
        for number in range(3):
            archive(f"{number}.zarr", YEARS[number])
            a.append_member(f"{number}.zarr")
    reader = cdd.logical.open("repo", allow=["."])
    for number in range(3):
        assert np.array_equal(reader[:], expected)
        with cdd.logical.transaction("repo", f"region {number} to cdd", allow=["."]) as t:
            t["books"].replace(number, codec="cdd")
        assert reader.refresh()
    assert np.array_equal(cdd.logical.open("repo")[:], expected)  # nothing of it lies elsewhere any more
    assert cdd.logical.verify("repo").ok
