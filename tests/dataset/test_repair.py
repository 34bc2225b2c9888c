"""Damaged superchunks, mended: whole rows stay, lost ones are said, older versions are what they were."""

import warnings
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import cdd
import cdd.dataset as datasets
from cdd.dataset.protocol import extents as ex
from cdd.dataset.protocol import ops
from tests.dataset.test_changing import filled
from tests.dataset.test_commands import cdd as command

ROWS = 20_000


def rows_of(first: int, count: int) -> dict[str, np.ndarray]:
    random = np.random.default_rng(first)
    return {
        "time": np.arange(first, first + count) * 3,
        "x": random.normal(size=count),
        "book": random.normal(size=(count, 3, 2)).astype(np.float32),
    }


WHOLE = rows_of(0, ROWS)


def collected(path: Path) -> Path:
    with datasets.open(path, "w", superchunk_bytes=100_000) as w:
        for at in range(0, ROWS - 2000, 2000):
            w.append({name: array[at : at + 2000] for name, array in WHOLE.items()})
            w.flush()
    with datasets.open(path, "a") as w:
        w.append({name: array[-2000:] for name, array in WHOLE.items()})
    return path


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return collected(tmp_path / "set")


def superchunk(path: Path, column: str, number: int) -> Path:
    return path / "data" / column / f"__{number}__.cdd"


def hit_chunk(file: Path, chunk: int) -> tuple[int, int]:
    """Damages a chunk. Returns its rows in the file."""
    with cdd.open(file, mmap=False) as reader:
        info = reader.chunk_infos[chunk]
    data = bytearray(file.read_bytes())
    data[info.offset + info.stored_bytes // 2] ^= 0x55
    file.write_bytes(data)
    return info.start, info.stop


def check(path: Path, kept: np.ndarray) -> None:
    ds = datasets.open(path)
    assert ds.verify().ok
    for name, array in WHOLE.items():
        assert np.array_equal(ds[name][:], array[kept]), name
    assert ds.at(int(WHOLE["time"][kept][7])) == 7
    with datasets.open(path, "a") as w:
        w.append({name: array[-1:] for name, array in WHOLE.items()})
    assert len(datasets.open(path)) == kept.sum() + 1


def test_nothing_is_damaged(path: Path) -> None:
    before = datasets.open(path).version
    report = datasets.repair(path)
    assert (report.mended, report.lost, report.versions) == ((), (), ())
    assert datasets.open(path).version == before
    assert "nothing is damaged" in str(report)


def test_rows_that_are_lost_are_taken_from_all_columns(path: Path) -> None:
    before = datasets.open(path).version
    start, stop = hit_chunk(superchunk(path, "x", 2), 1)
    base = int(datasets.open(path)["x"]._state.extents[0, 2])
    kept = np.ones(ROWS, bool)
    kept[base + start : base + stop] = False
    report = datasets.repair(path)
    assert [(lost.column, lost.start, lost.stop, lost.is_filled) for lost in report.lost] == [
        ("x", base + start, base + stop, False)
    ]
    assert "x: superchunk 2, data/x/__2__.cdd, is mended" in str(report)
    check(path, kept)
    old = datasets.open(path, as_of=before)
    assert np.array_equal(old["time"][:], WHOLE["time"])
    with pytest.raises(
        cdd.ChecksumError, match=r"column x of version \d+, superchunk 2: .*__2__.cdd: chunk 1"
    ):
        old["x"][:]
    assert datasets.repair(path).mended == ()


def test_rows_that_are_lost_are_filled(path: Path) -> None:
    start, stop = hit_chunk(superchunk(path, "x", 1), 0)
    report = datasets.repair(path, fill={"x": np.nan})
    assert [lost.is_filled for lost in report.lost] == [True]
    ds = datasets.open(path)
    assert len(ds) == ROWS
    assert np.isnan(ds["x"][start:stop]).all()
    assert np.array_equal(ds["x"][stop:], WHOLE["x"][stop:])
    assert np.array_equal(ds["book"][:], WHOLE["book"])
    assert ds.verify().ok
    hit_chunk(superchunk(path, "time", 1), 0)
    with pytest.raises(ValueError, match="is a clock"):
        datasets.repair(path, fill={"time": 0})


def test_several_columns_at_once_and_a_missing_file(path: Path) -> None:
    extents = datasets.open(path)["book"]._state.extents
    superchunk(path, "book", int(extents[1, 0])).unlink()
    a, b = hit_chunk(superchunk(path, "time", 1), 1)
    kept = np.ones(ROWS, bool)
    kept[a:b] = False
    kept[extents[0, 2] : extents[0, 2] + extents[1, 2]] = False
    report = datasets.repair(path)
    assert {lost.column for lost in report.lost} == {"time", "book"}
    check(path, kept)


def zero_index(file: Path) -> None:
    """Of the first block of the index, which stands between the header and the first chunk."""
    data = bytearray(file.read_bytes())
    with cdd.open(file, mmap=False) as reader:
        first = min(info.offset for info in reader.chunk_infos)
    end = end_of_header(data)
    data[end:first] = bytes(first - end)
    file.write_bytes(data)


def end_of_header(data: bytearray) -> int:
    """Where the header of a file ends."""
    end = 14 + int.from_bytes(data[6:10], "little")
    return end + int.from_bytes(data[end - 4 : end], "little")


def cut_half(file: Path) -> None:
    data = file.read_bytes()
    file.write_bytes(data[: len(data) * 2 // 3])


@pytest.mark.parametrize("damage", [zero_index, cut_half])
@pytest.mark.parametrize("number", [1, -1])
def test_what_cannot_be_opened_is_searched(path: Path, damage: Callable[[Path], None], number: int) -> None:
    extents = datasets.open(path)["book"]._state.extents
    file = superchunk(path, "book", int(extents[number if number > 0 else -1, 0]))
    first = 0
    for extent in extents:
        if f"__{extent[0]}__" in file.name:
            break
        first += int(extent[2])
    damage(file)
    before = len(list(file.parent.iterdir()))
    report = datasets.repair(path)
    # An index that ends early is one that a killed writer leaves: of a tail that is no damage.
    is_mended = damage is cut_half or number == 1
    assert len(list(file.parent.iterdir())) == before + is_mended
    assert bool(report.mended) == is_mended
    kept = np.ones(ROWS, bool)
    for lost in report.lost:
        assert lost.column == "book"
        assert lost.start >= first
        kept[lost.start : lost.stop] = False
    assert kept.all() if damage is zero_index else ROWS > kept.sum() > ROWS - 6000
    check(path, kept)


def test_flushed_rows_of_a_damaged_tail(path: Path) -> None:
    w = datasets.open(path, "a")
    more = rows_of(ROWS, 500)
    w.append(more)
    w.flush()
    with pytest.raises(BlockingIOError):
        hit_chunk(superchunk(path, "x", tail(path, "x")), -1)
        datasets.repair(path)
    w._let_go()  # as a killed process
    report = datasets.repair(path)
    ds = datasets.open(path)
    kept = np.ones(ROWS + 500, bool)
    for lost in report.lost:
        kept[lost.start : lost.stop] = False
    assert 0 < kept.sum() < ROWS + 500
    assert np.array_equal(ds["time"][:], np.concatenate((WHOLE["time"], more["time"]))[kept])
    assert np.array_equal(ds["x"][:], np.concatenate((WHOLE["x"], more["x"]))[kept])
    with datasets.open(path, "a") as w:
        w.append(rows_of(ROWS + 500, 3))
    assert len(datasets.open(path)) == kept.sum() + 3


def tail(path: Path, column: str) -> int:
    return int(datasets.open(path)[column]._state.extents[-1, 0])


def test_attached_files(tmp_path: Path) -> None:
    path = tmp_path / "set"
    with datasets.open(path, "w") as w:
        w.append(s=np.arange(3000))
    (tmp_path / "far").mkdir()
    far = tmp_path / "far" / "y.cdd"
    cdd.save(far, np.random.default_rng(1).normal(size=3000))
    with datasets.transaction(path, allow=[tmp_path / "far"]) as t:
        t.attach("y", far)
    start, stop = hit_chunk(far, 1)
    with pytest.raises(datasets.DatasetError, match="allow="):
        datasets.repair(path)
    data = far.read_bytes()
    report = datasets.repair(path, allow=[tmp_path / "far"], fill={"y": 0.0})
    assert [(lost.start, lost.stop) for lost in report.lost] == [(start, stop)]
    assert far.read_bytes() == data
    assert (datasets.open(path, allow=[tmp_path / "far"])["y"][start:stop] == 0).all()


def test_the_command_and_what_single_files_refuse(path: Path, tmp_path: Path) -> None:
    cdd.save(tmp_path / "t.cdd", WHOLE["time"])
    datasets.adopt(tmp_path / "adopted", time=tmp_path / "t.cdd")
    for file in (superchunk(path, "x", 1), superchunk(tmp_path / "adopted", "time", 1)):
        before = file.read_bytes()
        for work in (
            lambda f: cdd.repair(f),
            lambda f: cdd.compact(f),
            lambda f: cdd.truncate(f, rows=3),
        ):
            with pytest.raises(ValueError, match=r"belongs to a dataset.*repair or compact DATASET"):
                work(file)
        assert file.read_bytes() == before
        cdd.repair(file, tmp_path / f"{file.parent.name}.cdd")
    assert command("repair", path) == (0, f"{path}: nothing is damaged\n")
    hit_chunk(superchunk(path, "x", 1), 0)
    with pytest.raises(ValueError, match="belongs to a dataset"):
        cdd.repair(superchunk(path, "x", 1))
    status, text = command("repair", path)
    assert status == 1
    assert "are lost, taken from all columns" in text
    assert datasets.open(path).verify().ok
    assert command("repair", path, "--output", tmp_path / "x")[0] == 2


@pytest.mark.parametrize("rows", [40, 400])  # in the manifest itself, and in a page
def test_rows_of_a_file_that_lie_backwards_are_refused(tmp_path: Path, rows: int) -> None:
    path = tmp_path / "set"
    filled(path, rows)
    with datasets.transaction(path) as t:
        t["price"][:] = np.arange(rows)
    t = datasets.transaction(path)
    price = t._draft.state.column("", "price")
    extents = np.repeat(price.extents[:1], rows, 0)
    extents[:, ex.FIRST], extents[:, ex.ROWS] = np.arange(rows)[::-1], 1
    t._draft.do(ops.Modify("", "price", np.arange(rows), [ops.Piece(0, rows, extents)], price.next))
    t.commit()
    number = int(extents[0, ex.NUMBER])
    with pytest.raises(cdd.FormatError, match=f"column 'price' has rows of superchunk {number} twice"):
        opened(path)["price"].read_windows([0], 2)
    with pytest.raises(cdd.FormatError, match="order of the file"), datasets.transaction(path) as t:
        t["price"][0] = t["price"][1]


def test_which_extents_are_in_the_order_of_their_files() -> None:
    def backward(*extents: tuple[int, int, int]) -> int | None:
        return ex.backward(np.concatenate([ex.none(), *(ex.one(*one, b"") for one in extents)]))

    assert backward() is None
    assert backward((2, 5, 5), (1, 0, 9), (0, 0, 3), (2, 10, 1), (0, 0, 3), (1, 9, ex.OPEN)) is None
    assert backward((2, 5, 5), (1, 0, 9), (2, 9, 1)) == 2
    assert backward((2, 5, 5), (1, 3, 9), (2, 10, 1), (1, 0, ex.OPEN)) == 1


# ------------------------------------------------------------ one column, and all others


SIDES = ["buy", "sell"] * 3  # a column whose files have ended, and with it those of all others


def six_rows(place: datasets.Directory, with_side: bool) -> None:
    with datasets.open(place, "w") as w:
        w["trades"].append(time=np.arange(3))
        w.append(time=np.arange(6), x=np.arange(6) * 2, sym=["a", "bc", "a", "", "bc", "d"])
    if with_side:
        with datasets.transaction(place) as t:
            t.add_column("side", SIDES)
        with datasets.open(place, "a") as w:
            w.append(time=[6], x=[12], sym=["a"], side=["buy"])


FILES = {
    "time": "time/__1__.cdd",
    "x": "x/__1__.cdd",
    "sym": "sym/__1__.cdd",
    "sym.values": "sym.values/utf8/__1__.cdd",
    "sym.ends": "sym.ends/ends/__1__.cdd",
    "side.values": "side.values/utf8/__1__.cdd",
    "side.ends": "side.ends/ends/__1__.cdd",
}


@pytest.fixture(params=["folder", "memory"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> datasets.Directory:
    if request.param == "memory":
        return datasets.MemoryDirectory()
    return datasets.LocalDirectory(tmp_path / "set")


def damage(place: datasets.Directory, path: str, how: str) -> None:
    if how == "missing":
        place.delete(path)
        return
    local = isinstance(place, datasets.LocalDirectory)
    data = bytearray(Path(place.store(path)).read_bytes() if local else bytes(place.store(path)))
    if how == "cut":
        del data[100:]
    else:
        with cdd.open(bytes(data)) as reader:
            info = reader.chunk_infos[0]
        data[info.offset + info.stored_bytes - 1] ^= 0x55
    if local:
        Path(place.store(path)).write_bytes(data)
    else:
        place._files[path] = cdd.Memory(data)


def opened(place: datasets.Directory) -> datasets.Dataset:
    """Whatever is damaged: a warning tells of files at the end."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        return datasets.open(place)


def read(column: datasets.Column) -> object:
    return column.text() if column.is_text else column[:]


@pytest.mark.parametrize("how", ["cut", "missing", "chunk"])
@pytest.mark.parametrize("with_side", [False, True])
@pytest.mark.parametrize("file", FILES)
@pytest.mark.parametrize("mended_by", ["drop", "repair"])
def test_a_damaged_column_and_all_others(
    place: datasets.Directory, file: str, with_side: bool, how: str, mended_by: str
) -> None:
    six_rows(place, with_side or file.startswith("side"))
    with_side = "side" in opened(place).columns
    before = opened(place).version
    damage(place, f"data/{FILES[file]}", how)
    name = file.partition(".")[0]
    rows = {"time": [9], "x": [9], "sym": ["d"]} | ({"side": ["sell"]} if with_side else {})
    others = [column for column in rows if column != name]
    for ds in (opened(place), datasets.open(place, as_of=before)):
        for column in others:
            assert len(read(ds[column])) == 6 + with_side
        with pytest.raises(cdd.FormatError, match=name):
            read(ds[name])
        assert {column.column.partition(".")[0] for column in ds.verify().columns if not column.ok} == {name}
    # Rows are appended to the files at the end, behind the last time, with codes of all texts: where one of
    # these is damaged nothing is appended. The chunks of other files are not looked at.
    if "." in file or (not with_side and (how != "chunk" or file == "time")):
        for _ in range(2):
            with datasets.open(place, "a") as w:
                with pytest.raises(cdd.FormatError, match=rf"{name}.*python -m cdd repair .* mends it"):
                    w.append(rows)
                w["trades"].append(time=[3])
        with datasets.transaction(place) as t:
            for work in (lambda: t.trim(3), lambda: t.add_column("y", fill=1), lambda: t.delete(0, 1)):
                with pytest.raises(cdd.FormatError, match=rf"{name}.*python -m cdd repair"):
                    work()
    if mended_by == "drop":
        with datasets.transaction(place) as t:
            t.drop_column(name)
        assert set(datasets.open(place).columns) == set(others)
    else:
        report = datasets.repair(place)
        assert report.mended
        assert {lost.column for lost in (*report.lost, *report.lost_texts)} == {name}
        assert f"{name}: " in str(report)
    left = datasets.open(place)
    assert left.verify().ok
    count = len(left)
    assert count == 6 + with_side - (6 if mended_by == "repair" and "." not in file else 0)
    with datasets.open(place, "a") as w:
        w.append({column: rows[column] for column in left.columns})
    ds = datasets.open(place)
    assert ds.verify().ok
    assert len(ds) == count + 1
    if mended_by == "repair" and "." in file:
        texts = ds[name].text()
        assert texts[-1] == rows[name][0]
        alike = ["a", "bc", "a", "", "bc", "d"] if name == "sym" else SIDES
        assert [texts.index(text) for text in texts[:6]] == [alike.index(text) for text in alike]
    assert len(read(datasets.open(place, as_of=before)[others[0]])) == 6 + with_side
