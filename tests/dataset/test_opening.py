"""What opening makes of a folder that holds something else, or what is left of a dataset."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import cdd
from cdd.dataset import MemoryDirectory
from cdd.dataset.protocol.directory import Directory, LocalDirectory
from cdd.dataset.protocol.identity import DATASET, clear


def filled(place: Any) -> Any:
    with cdd.dataset.open(place, "w") as w:
        w.append(time=np.arange(5), price=np.arange(5.0))
    return place


def files_below(folder: Path) -> dict[str, bytes]:
    return {str(p.relative_to(folder)): p.read_bytes() for p in folder.rglob("*") if p.is_file()}


@pytest.mark.parametrize("mode", ["a", "x", "w"])
@pytest.mark.parametrize("lost", ["dataset.json", "meta"])
def test_a_dataset_without_its_first_file_is_kept(tmp_path: Path, mode: Any, lost: str) -> None:
    folder = filled(tmp_path / "d")
    first = (folder / DATASET).read_bytes()
    for path in sorted((folder / "meta").rglob("*"), reverse=True) if lost == "meta" else [folder / DATASET]:
        path.rmdir() if path.is_dir() else path.unlink()
    before = files_below(folder)
    with pytest.raises(FileExistsError, match=r"holds '.*', and no meta/dataset.json.*put it back"):
        cdd.dataset.open(folder, mode)
    assert files_below(folder) == before
    if lost == "dataset.json":
        (folder / DATASET).write_bytes(first)
        assert len(cdd.dataset.open(folder)) == 5


@pytest.mark.parametrize("mode", ["a", "x", "w"])
def test_folders_of_others_are_kept(tmp_path: Path, mode: Any) -> None:
    (tmp_path / "data/2026").mkdir(parents=True)
    (tmp_path / "data/2026/trades.csv").write_text("1,2\n")
    with pytest.raises(FileExistsError, match=r"holds 'data/2026/trades\.csv'"):
        cdd.dataset.open(tmp_path, mode)
    assert files_below(tmp_path) == {"data/2026/trades.csv": b"1,2\n"}


class Stopping(LocalDirectory):
    """Fails at its k-th change."""

    def __init__(self, path: Path, left: int) -> None:
        super().__init__(path)
        self.left = left

    def _step(self) -> None:
        self.left -= 1
        if self.left < 0:
            raise KeyboardInterrupt

    def put(self, path: str, data: bytes) -> None:
        self._step()
        super().put(path, data)

    def delete(self, path: str) -> None:
        self._step()
        super().delete(path)

    def remove_folder(self, folder: str) -> None:
        self._step()
        super().remove_folder(folder)


@pytest.mark.parametrize("mode", ["a", "x", "w"])
def test_a_removal_that_was_stopped_anywhere_is_gone_on_with(tmp_path: Path, mode: Any) -> None:
    k = 0
    while True:
        folder = filled(tmp_path / f"{k}")
        try:
            clear(Stopping(folder, k), replaces=True)
        except KeyboardInterrupt:
            pass
        else:
            break
        is_there = (folder / DATASET).exists()
        if mode == "x" and is_there:
            with pytest.raises(FileExistsError, match="a dataset already"):
                cdd.dataset.open(folder, mode)
        else:
            with cdd.dataset.open(folder, mode) as w:
                assert len(w) == (5 if is_there and mode == "a" else 0)
                w.append(time=np.arange(9, 12), price=np.arange(3.0))
            assert len(cdd.dataset.open(folder)) == (8 if is_there and mode == "a" else 3)
        k += 1
    assert k > 10
    assert files_below(folder) == {}


@pytest.mark.parametrize("kind", ["folder", "memory"])
def test_who_comes_second_removes_nothing(tmp_path: Path, kind: str) -> None:
    """Another process made the dataset after this one looked."""
    place: Directory = MemoryDirectory() if kind == "memory" else LocalDirectory(tmp_path / "d")
    filled(place)
    clear(place, replaces=False)
    assert len(cdd.dataset.open(place)) == 5
