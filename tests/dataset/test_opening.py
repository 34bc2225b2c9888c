"""What opening makes of a folder that holds something else, or what is left of a dataset: of files at its
end that are damaged, too."""

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import cdd
import cdd.dataset as datasets
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


def test_adopt_makes_no_dataset_among_other_files(tmp_path: Path) -> None:
    path = tmp_path / "set"
    cdd.save(tmp_path / "y.cdd", np.arange(9))
    with cdd.dataset.open(path, "w") as w:
        w.append(time=np.arange(9))
    (path / "meta" / "dataset.json").rename(tmp_path / "kept.json")
    with pytest.raises(FileExistsError, match="lost that file, put it back"):
        cdd.dataset.adopt(path, table="t", y=tmp_path / "y.cdd")
    assert not (path / "meta" / "dataset.json").exists()
    (tmp_path / "kept.json").rename(path / "meta" / "dataset.json")
    cdd.dataset.adopt(path, table="t", y=tmp_path / "y.cdd")
    assert len(cdd.dataset.open(path)) == len(cdd.dataset.open(path)["t"]) == 9


# ------------------------------------------------------------ damaged files at the end

ROWS = 500
X = np.random.default_rng(1).integers(0, 10**15, ROWS)


def collected(path: Path, durability: str = "batch", is_killed: bool = False) -> tuple[Path, bytes]:
    """A dataset whose tails have 50 chunks. Returns the last file of "x", and what it held with 250 rows."""
    live = path.with_name("live") if is_killed else path
    w = cdd.dataset.open(
        live, "w", durability=durability, columns={key: {"chunk_rows": 10} for key in ("time", "x")}
    )
    for start in (0, 250):
        w.append(time=np.arange(start, start + 250) * 3, x=X[start : start + 250])
        w.commit()
        if start == 0:
            half = (live / "data/x/__1__.cdd").read_bytes()
    if is_killed:
        shutil.copytree(live, path)
    w.close()
    return path / "data/x/__1__.cdd", half


def hit_records(file: Path, *chunks: int, wipes_index: bool = False) -> bytes:
    with cdd.open(file, mmap=False) as reader:
        infos = list(reader.chunk_infos)
    data = bytearray(file.read_bytes())
    for chunk in chunks:
        data[infos[chunk].offset + infos[chunk].stored_bytes // 2] ^= 1
    if wipes_index:
        end = 14 + int.from_bytes(data[6:10], "little")  # of the header
        end += int.from_bytes(data[end - 4 : end], "little")
        data[end : infos[0].offset] = bytes(infos[0].offset - end)
    file.write_bytes(data)
    return bytes(data)


def check_rows(path: Path, kept: np.ndarray) -> None:
    ds = cdd.dataset.open(path)
    assert np.array_equal(ds["time"][:], np.arange(ROWS)[kept] * 3)
    assert np.array_equal(ds["x"][:], X[kept])
    assert ds.verify().ok


def test_whole_rows_of_a_file_that_is_too_short_are_kept(tmp_path: Path) -> None:
    file, half = collected(tmp_path / "set")
    file.write_bytes(half)
    report = cdd.dataset.repair(tmp_path / "set")
    assert [(lost.column, lost.start, lost.stop) for lost in report.lost] == [("x", 250, ROWS)]
    check_rows(tmp_path / "set", np.arange(ROWS) < 250)
    assert file.read_bytes() == half


@pytest.mark.parametrize("part", ["values/utf8", "ends/ends"])
def test_whole_texts_of_a_file_that_is_too_short_are_kept(tmp_path: Path, part: str) -> None:
    file = tmp_path / "set" / "data" / f"s.{part}" / "__1__.cdd"
    with cdd.dataset.open(tmp_path / "set", "w", clock=None) as w:
        w.append(s=[f"a{k}" for k in range(10)])
        w.commit()
        half = file.read_bytes()
        w.append(s=[f"b{k}" for k in range(10)])
    file.write_bytes(half)
    report = cdd.dataset.repair(tmp_path / "set")
    assert [(lost.column, lost.start, lost.stop) for lost in report.lost_texts] == [("s", 10, 20)]
    texts = cdd.dataset.open(tmp_path / "set")["s"].text()
    assert list(texts[:11]) == [*(f"a{k}" for k in range(10)), "lost text 10"]


@pytest.mark.parametrize("durability", ["none", "flush", "batch", "always"])
def test_rows_behind_a_damaged_record_are_kept(tmp_path: Path, durability: str) -> None:
    """A writer that was killed left no proof of them, and the next one would cut them off."""
    path = tmp_path / "set"
    file, _ = collected(path, durability, is_killed=True)
    data = hit_records(file, 35)
    if durability == "none":
        with (
            pytest.raises(cdd.FormatError, match=r"'x'.*is damaged.*cdd repair"),
            cdd.dataset.open(path, "a") as w,
        ):
            w.append(time=[9000], x=[1])
    assert file.read_bytes() == data
    report = cdd.dataset.repair(path)
    assert [(lost.column, lost.start, lost.stop) for lost in report.lost] == [("x", 350, 360)]
    check_rows(path, np.arange(ROWS) // 10 != 35)


def append(path: Path) -> None:
    with pytest.raises(cdd.FormatError, match=r"'x'.*cdd repair"), cdd.dataset.open(path, "a") as w:
        w.append(time=[9000], x=[1])


def drop(path: Path) -> None:
    with cdd.dataset.transaction(path) as t:
        t.drop_column("x")


def repair(path: Path) -> None:
    assert cdd.dataset.repair(path).lost
    check_rows(path, np.arange(ROWS) < 350)  # which rows those behind are nothing tells


@pytest.mark.parametrize("work", [append, drop, repair])
def test_damaged_files_at_the_end_stay(tmp_path: Path, work: Callable[[Path], None]) -> None:
    file, _ = collected(tmp_path / "set")
    data = hit_records(file, 35, wipes_index=True)
    work(tmp_path / "set")
    assert file.read_bytes() == data
    assert cdd.repair(file, tmp_path / "x.cdd").rows == ROWS - 10


def test_a_collector_is_kept_away_where_every_file_at_the_end_is_damaged(tmp_path: Path) -> None:
    path = tmp_path / "set"
    with cdd.dataset.open(path, "w", clock=None, columns={"x": {"chunk_rows": 10}}) as w:
        w.append(x=X)
        w.commit()
        file = path / "data/x/__1__.cdd"
        data = hit_records(file, 35, wipes_index=True)
        with pytest.raises(BlockingIOError):
            cdd.dataset.repair(path)
        assert file.read_bytes() == data


def test_what_cannot_be_opened_is_not_lost(tmp_path: Path) -> None:
    path = tmp_path / "set"
    with cdd.dataset.open(path, "w", superchunk_bytes=3000) as w:
        for start in range(0, ROWS, 100):
            w.append(time=np.arange(start, start + 100) * 3, x=X[start : start + 100])
            w.flush()
    before = cdd.dataset.open(path).version
    for number in (1, int(cdd.dataset.open(path)["x"]._state.extents[-1, 0])):
        file = path / f"data/x/__{number}__.cdd"
        file.rename(tmp_path / "whole.cdd")
        file.mkdir()  # the system refuses to open it as a file
        with pytest.raises(OSError, match="cannot open"):
            cdd.dataset.repair(path)
        file.rmdir()
        (tmp_path / "whole.cdd").rename(file)
        assert cdd.dataset.open(path).version == before
    assert cdd.dataset.repair(path).mended == ()
    check_rows(path, np.ones(ROWS, bool))


# ------------------------------------------------------------ files that are older than the newest version


def older_copy(path: Path, name: str, rows: dict[str, Any], more: dict[str, Any]) -> None:
    """A dataset of two versions, one file of which is as it was in the first."""
    file = path / "data" / name
    with datasets.open(path, "w") as w:
        w.append(rows)
        w.commit()
        before = file.read_bytes()
        w.append(more)
    file.write_bytes(before)


def test_a_refused_append_commits_nothing(tmp_path: Path) -> None:
    first, second = ({"time": a, "x": a} for a in np.split(np.arange(500), 2))
    path = tmp_path / "set"
    older_copy(path, "x/__1__.cdd", first, second)
    before = datasets.open(path).version
    for _ in range(2):
        told = r"'x'.*250 rows.*500 are needed"
        with pytest.raises(cdd.TruncatedError, match=told), datasets.open(path, "a") as w:
            w.append(time=[900], x=[1])
        w = datasets.open(path, "a")
        with pytest.raises(cdd.TruncatedError):
            w.append(time=[900], x=[1])
        w.flush()
        w["t"].append(y=[1])
        w.close()
    ds = datasets.open(path)
    assert len(ds) == 500
    assert int(ds.version) == int(before) + 3  # of the other table
    assert np.array_equal(ds["time"][:], np.arange(500))
    assert not ds.verify().ok
    assert [lost.stop for lost in datasets.repair(path).lost] == [500]


TEXTS = ([f"a{k}" for k in range(10)], [f"b{k}" for k in range(10)])
HIDDEN = ["s.values/utf8/__1__.cdd", "s.ends/ends/__1__.cdd"]


@pytest.mark.parametrize("name", HIDDEN)
def test_texts_that_a_version_needs(tmp_path: Path, name: str) -> None:
    path = tmp_path / "set"
    older_copy(path, name, {"s": TEXTS[0]}, {"s": TEXTS[1]})
    for _ in range(2):
        told = r"'s.*python -m cdd repair"
        with pytest.raises(cdd.TruncatedError, match=told), datasets.open(path, "a") as w:
            w.append(s=["new"])
    ds = datasets.open(path)
    assert len(ds) == 20
    assert not ds.verify().ok
    with pytest.raises(cdd.TruncatedError, match=r"s\.(values|ends)"):
        ds["s"].text(10, 12)
    datasets.repair(path)
    assert len(set(datasets.open(path)["s"].text())) == 20


@pytest.mark.parametrize("name", HIDDEN)
@pytest.mark.parametrize("table", ["", "t"])
def test_texts_of_rows_that_are_in_no_version(tmp_path: Path, name: str, table: str) -> None:
    path = tmp_path / "set"
    file = path / "data" / table / name
    full = f"{table}/s" if table else "s"
    writer = datasets.open(path, "w", clock=None)
    w = writer[table] if table else writer
    w.append(s=TEXTS[0], x=np.arange(10))
    writer.commit()
    before = file.read_bytes()
    w.append(s=TEXTS[1], x=np.arange(10))
    writer.flush()
    writer._let_go()  # as a killed process
    file.write_bytes(before)
    number = int(datasets.open(path).version)
    for text in ("new", "a3"):
        for _ in range(2):
            told = f"'{full}': 10 texts are there.* of 20; python -m cdd repair"
            with pytest.raises(cdd.FormatError, match=told), datasets.open(path, "a") as writer:
                (writer[table] if table else writer).append(s=[text], x=[1])
    with pytest.raises(cdd.FormatError, match="10 texts"), datasets.transaction(path) as t:
        t[full][0:1] = ["new"]
    ds = datasets.open(path)
    assert (int(ds.version), len(ds[full])) == (number, 20)
    assert [one.column for one in ds.verify().columns if not one.ok] == [full]
    assert f"{full}: it has code 19, and only 10 texts" in str(ds.verify())
    assert datasets.open(path, as_of=number).verify().ok
    report = datasets.repair(path)
    assert [(lost.column, lost.start, lost.stop) for lost in report.lost_texts] == [(full, 10, 20)]
    assert report.mended == (f"{full}: it has code 19, and only 10 texts",)
    with datasets.open(path, "a") as writer:
        (writer[table] if table else writer).append(s=["new"], x=[1])
    ds = datasets.open(path)
    assert ds.verify().ok
    assert ds[full].text() == TEXTS[0] + [f"lost text {k}" for k in range(10, 20)] + ["new"]
    assert datasets.repair(path).mended == ()


def test_codes_of_rows_that_do_not_count(tmp_path: Path) -> None:
    """A column was flushed and another was not: rows that not all have need no texts."""
    with datasets.open(tmp_path, "w", clock=None) as w:
        w.append(s=TEXTS[0], x=np.arange(10))
    before = [(tmp_path / "data" / name, (tmp_path / "data" / name).read_bytes()) for name in
              ("x/__1__.cdd", *HIDDEN)]  # fmt: skip
    writer = datasets.open(tmp_path, "a")
    writer.append(s=TEXTS[1], x=np.arange(10))
    writer.flush()
    writer._let_go()
    for file, data in before:
        file.write_bytes(data)
    with datasets.open(tmp_path, "a") as w:
        w.append(s=["new"], x=[1])
    ds = datasets.open(tmp_path)
    assert ds["s"].text() == [*TEXTS[0], "new"]
    assert ds.verify().ok
