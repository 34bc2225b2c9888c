"""cdd.Windows: which windows there are, and that each is what NumPy cuts out of the array."""

import multiprocessing
import pickle
from pathlib import Path
from typing import Any

import hypothesis
import hypothesis.strategies as st
import numpy as np
import pytest

import cdd
from cdd.windows import runs

BOOK = np.random.default_rng(5).random((300, 6, 3)).astype(np.float32)
TIME = np.cumsum(np.random.default_rng(6).integers(1, 9, 300)).astype("M8[ms]")
PRICE = BOOK[:, 3, 0].astype(np.float64)


def opened(array: np.ndarray, **options: Any) -> cdd.Reader:
    memory = cdd.Memory()
    cdd.save(memory, array, **options)
    return cdd.open(bytes(memory))


def places(lengths: list[int], cuts: list[list[int]], rows: int, step: int) -> list[tuple[int, int]]:
    """(member, first row) of all windows, as one would do it by hand."""
    found = []
    for member, (length, cut) in enumerate(zip(lengths, cuts, strict=True)):
        begin = 0
        for end in sorted({*(c for c in cut if 0 < c < length), length}):
            found += [(member, start) for start in range(begin, end - rows + 1, step)]
            begin = end
    return found


@hypothesis.given(
    st.lists(st.tuples(st.integers(0, 40), st.lists(st.integers(0, 45), max_size=4)), min_size=1, max_size=3),
    st.integers(1, 12),
    st.integers(1, 5),
    st.data(),
)
def test_windows_are_those_within_runs(
    groups: list[tuple[int, list[int]]], rows: int, step: int, data: st.DataObject
) -> None:
    lengths = [length for length, _ in groups]
    cuts = [sorted(cut) for _, cut in groups]
    arrays = [np.arange(length * 2).reshape(length, 2) + 1000 * at for at, length in enumerate(lengths)]
    expected = places(lengths, cuts, rows, step)
    if not expected:
        with pytest.raises(ValueError, match=f"rows is {rows}"):
            cdd.Windows(arrays, rows, step=step, cut=cuts)
        return
    windows = cdd.Windows(arrays, rows, step=step, cut=cuts)
    assert len(windows) == len(expected)
    assert [windows.where(n) for n in range(len(windows))] == expected
    numbers = data.draw(st.lists(st.integers(-len(expected), len(expected) - 1), max_size=20))
    cut_out = [arrays[member][start : start + rows] for member, start in (expected[n] for n in numbers)]
    block = windows.read(numbers)
    assert block.shape == (len(numbers), rows, 2)
    assert np.array_equal(block, np.array(cut_out).reshape(block.shape))
    for number, window in zip(numbers, cut_out, strict=True):
        assert np.array_equal(windows[number], window)


@pytest.mark.parametrize("kind", ["reader", "column", "array", "logical"])
def test_one_array(kind: str, tmp_path: Path) -> None:
    source: Any = BOOK
    if kind == "reader":
        source = opened(BOOK)
    elif kind == "column":
        with cdd.dataset.open(tmp_path / "d", "w", superchunk_bytes=4096) as w:
            w.append(ob=BOOK[:200])
            w.append(ob=BOOK[200:])
        source = cdd.dataset.open(tmp_path / "d")["ob"]
    elif kind == "logical":
        with cdd.logical.transaction(tmp_path / "a.json", create=True) as t:
            made = t.create("a", shape=(0, 6, 3), dtype="f4")
            made.append(BOOK[:130], codec="cdd")
            made.append(BOOK[130:], codec="cdd")
        source = cdd.logical.open(tmp_path / "a.json")
    windows = cdd.Windows(source, 16, step=3)
    assert len(windows) == 95
    assert windows.names == ()
    assert np.array_equal(windows.read(range(95)), np.array([BOOK[n : n + 16] for n in range(0, 285, 3)]))
    assert np.array_equal(windows[-1], BOOK[282:298])
    part = cdd.Windows(source, 16, levels=slice(1, 4), features=[2, 0])
    assert np.array_equal(part.read([7, 1])[0], BOOK[7:23, 1:4][..., [2, 0]])
    assert np.array_equal(part[9], BOOK[9:25, 1:4][..., [2, 0]])
    out = np.empty((2, 16, 6, 3), np.float32)
    assert windows.read([3, 4], out=out) is out
    assert np.array_equal(out[1], BOOK[12:28])


def test_members_lie_side_by_side_and_the_shortest_decides() -> None:
    windows = cdd.Windows({"book": opened(BOOK), "time": opened(TIME[:290]), "y": PRICE}, 10)
    assert len(windows) == 281
    assert windows.names == ("book", "time", "y")
    found = windows.read([280, 0])
    assert np.array_equal(found["book"], [BOOK[280:290], BOOK[:10]])
    assert np.array_equal(found["time"], [TIME[280:290], TIME[:10]])
    assert found["time"].dtype == TIME.dtype
    assert np.array_equal(windows[5]["y"], PRICE[5:15])
    out = {"y": np.empty((1, 10))}
    assert windows.read([7], out=out)["y"] is out["y"]
    assert np.array_equal(out["y"][0], PRICE[7:17])
    with pytest.raises(ValueError, match="'book' has 300 rows, 'time' has 290: more than 9 apart"):
        cdd.Windows({"book": opened(BOOK), "time": opened(TIME[:290])}, 10, slack=9)
    assert len(cdd.Windows({"book": opened(BOOK), "time": opened(TIME[:290])}, 10, slack=10)) == 281


def dataset_at(path: Path, book: np.ndarray = BOOK) -> Path:
    with cdd.dataset.open(path, "w", superchunk_bytes=4096) as w:
        for at in range(0, len(book), 50):
            w.append(time=TIME[at : at + 50], ob=book[at : at + 50], price=PRICE[at : at + 50])
        w["trades"].append(time=TIME[::7], size=np.arange(43))
    return path


def test_columns_of_a_dataset(tmp_path: Path) -> None:
    ds = cdd.dataset.open(dataset_at(tmp_path / "d"))
    windows = cdd.Windows(ds, 20, columns=("ob", "time"))
    assert windows.names == ("ob", "time")
    found = windows.read([200, 3])
    assert np.array_equal(found["ob"], [BOOK[200:220], BOOK[3:23]])
    assert np.array_equal(found["time"], [TIME[200:220], TIME[3:23]])
    assert cdd.Windows(ds, 20).names == ("time", "ob", "price")
    alone = cdd.Windows(ds, 20, columns="price")
    assert np.array_equal(alone[30], PRICE[30:50])
    part = cdd.Windows(ds, 20, levels=0, features={"ob": slice(2)})
    assert part.names == ("time", "ob", "price")
    assert np.array_equal(part[8]["ob"], BOOK[8:28, 0, :2])
    assert np.array_equal(part[8]["price"], PRICE[8:28])
    for columns in ("size", ("size",)):
        trades = pickle.loads(pickle.dumps(cdd.Windows(ds["trades"], 4, columns=columns)))
        found = trades.read([39])
        assert np.array_equal(found if columns == "size" else found["size"], [[39, 40, 41, 42]])


def test_several_datasets_are_symbols(tmp_path: Path) -> None:
    books = [BOOK, BOOK[::-1].copy()[:200]]
    stores = [cdd.dataset.open(dataset_at(tmp_path / str(at), book)) for at, book in enumerate(books)]
    windows = cdd.Windows(stores, 50, columns=("ob", "price"), levels={"ob": slice(2, 4)})
    assert len(windows) == 251 + 151
    assert windows.where(251) == (1, 0)
    group, start = windows.where(np.array([0, 300, 401, 2]))
    assert group.tolist() == [0, 1, 1, 0]
    found = windows.read([0, 300, 401, 2])
    expected = [books[g][s : s + 50, 2:4] for g, s in zip(group, start, strict=True)]
    assert np.array_equal(found["ob"], expected)
    out = {"price": np.empty((2, 50)), "ob": np.empty((2, 50, 2, 3), np.float32)}
    windows.read([1, 260], out=out)
    assert np.array_equal(out["ob"][1], books[1][9:59, 2:4])
    assert np.array_equal(out["price"], [PRICE[1:51], PRICE[9:59]])


def test_time_with_gaps_ends_runs(tmp_path: Path) -> None:
    time = np.array([0, 1, 2, 100, 101, 102, 103, 900], "M8[s]")
    book = np.arange(8)
    for gap in (np.timedelta64(97, "s"), 97, np.timedelta64(97_999, "ms")):
        windows = cdd.Windows({"x": book, "t": time}, 2, time="t", max_gap=gap)
        assert [windows.where(n)[1] for n in range(len(windows))] == [0, 1, 3, 4, 5]
    windows = cdd.Windows(book, 2, time=opened(time.view(np.int64)), max_gap=98, cut=[5])
    assert [windows.where(n)[1] for n in range(len(windows))] == [0, 1, 2, 3, 5]
    with cdd.dataset.open(tmp_path / "d", "w") as w:
        w.append(time=time, x=book)
    for columns in ("x", ("x",), None):
        windows = cdd.Windows(cdd.dataset.open(tmp_path / "d"), 2, columns=columns, max_gap=97)
        assert len(windows) == 5
    extreme = np.array([-(2**63) + 1, 2**63 - 1])
    assert len(cdd.Windows(np.arange(2), 1, time=extreme, max_gap=5)) == 2
    assert len(cdd.Windows(np.arange(2), 2, time=extreme, max_gap=2**64 - 2)) == 1
    with pytest.raises(ValueError, match="the longest of 2 runs has 1 rows"):
        cdd.Windows(np.arange(2), 2, time=extreme, max_gap=2**64 - 3)


@hypothesis.given(
    st.lists(st.integers(0, 30), min_size=2, max_size=40), st.integers(0, 30), st.integers(1, 5)
)
def test_gaps_are_those_of_diff_whatever_the_block(steps: list[int], limit: int, block: int) -> None:
    time = np.cumsum(steps).astype(np.int64)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(runs, "_BLOCK_ROWS", block)
        found = runs.gaps(time, limit, 0, len(time), "time")
        assert found == (np.flatnonzero(np.diff(time) > limit) + 1).tolist()
        half = len(time) // 2
        parts = runs.gaps(time, limit, 0, half, "time") + runs.gaps(time, limit, half, len(time), "time")
        assert parts == found


def test_bad_times_are_errors_that_name_the_row(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runs, "_BLOCK_ROWS", 3)
    time = np.array([0, 1, 2, 3, 4, 5, 6, 5], "M8[s]")
    with pytest.raises(ValueError, match="time goes back in row 7: 5 after 6"):
        cdd.Windows(np.arange(8), 2, time=time, max_gap=9)
    time[6] = "NaT"
    with pytest.raises(ValueError, match="time is NaT in row 6"):
        cdd.Windows(np.arange(8), 2, time=time, max_gap=9)
    with pytest.raises(ValueError, match=r"time has 8 rows, and .* 9"):
        cdd.Windows(np.arange(9), 2, time=time, max_gap=9)
    for bad in (np.arange(8.0), np.zeros((8, 2), int), opened(BOOK[:8])):
        with pytest.raises(TypeError, match="one integer or datetime64 a row"):
            cdd.Windows(np.arange(8), 2, time=bad, max_gap=9)
    with pytest.raises(TypeError, match="max_gap is a number in the unit of time, which holds int64"):
        cdd.Windows(np.arange(8), 2, time=np.arange(8), max_gap=np.timedelta64(1, "s"))
    with pytest.raises(ValueError, match="max_gap is -1"):
        cdd.Windows(np.arange(8), 2, time=np.arange(8), max_gap=-1)
    with pytest.raises(ValueError, match="NaT"):
        cdd.Windows(np.arange(8), 2, time=time, max_gap=np.timedelta64("NaT"))
    with pytest.raises(TypeError, match="no clock"):
        cdd.Windows(np.arange(8), 2, max_gap=9)
    with pytest.raises(TypeError, match="there is no max_gap"):
        cdd.Windows(np.arange(8), 2, time=time)


def test_bad_arguments_are_errors() -> None:
    reader = opened(BOOK)
    for rows in (0, -1):
        with pytest.raises(ValueError, match=f"rows is {rows}"):
            cdd.Windows(reader, rows)
    with pytest.raises(ValueError, match="rows is 301, and all there is has 300 rows"):
        cdd.Windows(reader, 301)
    with pytest.raises(ValueError, match="the longest of 2 runs has 200 rows"):
        cdd.Windows(reader, 201, cut=[100])
    with pytest.raises(ValueError, match="step is 0"):
        cdd.Windows(reader, 2, step=0)
    with pytest.raises(TypeError, match="rows is an integer"):
        cdd.Windows(reader, 2.5)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="cut goes back from row 9 to row 3"):
        cdd.Windows(reader, 2, cut=[9, 3])
    with pytest.raises(ValueError, match="cut has row -1"):
        cdd.Windows(reader, 2, cut=[-1])
    with pytest.raises(TypeError, match="cut is a sequence of row numbers"):
        cdd.Windows(reader, 2, cut=[1.5])
    with pytest.raises(ValueError, match="cut has one entry for each of the 2"):
        cdd.Windows([reader, reader], 2, cut=[[1]])
    for source in ([], {}):
        with pytest.raises(ValueError, match="there are no stores"):
            cdd.Windows(source, 2)
    with pytest.raises(TypeError, match="windows are of stores, columns and arrays, not of 5"):
        cdd.Windows([5], 2)
    with pytest.raises(TypeError, match="columns= is for tables"):
        cdd.Windows(reader, 2, columns=("a",))
    with pytest.raises(TypeError, match="not of several kinds"):
        cdd.Windows([reader, {"a": reader}], 2)
    with pytest.raises(ValueError, match=r"float64 \(6, 3\).*float32 \(6, 3\)"):
        cdd.Windows([reader, BOOK.astype(np.float64)], 2)
    with pytest.raises(ValueError, match="levels= picks of"):
        cdd.Windows(PRICE, 2, levels=0)
    with pytest.raises(ValueError, match="those of 'p' are"):
        cdd.Windows({"b": BOOK, "p": PRICE}, 2, levels={"p": 0})
    with pytest.raises(KeyError, match="features has 'q'"):
        cdd.Windows({"b": BOOK, "p": PRICE}, 2, features={"q": 0})
    with pytest.raises(ValueError, match="no dtype yet"):
        empty = cdd.Memory()
        cdd.open(empty, "w").close()
        cdd.Windows(cdd.open(empty), 2)
    windows = cdd.Windows(reader, 2)
    for number in (299, -300):
        with pytest.raises(IndexError, match=f"window {number} is not one of 299"):
            windows[number]
        with pytest.raises(IndexError, match=f"window {number} is not one of 299"):
            windows.read([0, number])
    with pytest.raises(TypeError, match="sequence of numbers"):
        windows.read([1.5])
    with pytest.raises(TypeError, match="sequence of numbers"):
        windows.read(3)
    with pytest.raises(KeyError, match="out has 'z'"):
        cdd.Windows({"b": BOOK}, 2).read([0], out={"z": BOOK})


def test_slices_and_getitems_give_a_batch() -> None:
    windows = cdd.Windows({"b": opened(BOOK), "p": PRICE}, 4, step=10)
    batch = windows.__getitems__([3, 1])
    assert isinstance(batch, list)
    assert len(batch) == 2
    assert np.array_equal(batch[0]["b"], BOOK[30:34])
    assert np.shares_memory(batch[0]["b"], batch.array["b"])
    assert np.array_equal(windows[1:7:2].array["p"], [PRICE[10:14], PRICE[30:34], PRICE[50:54]])
    copied = pickle.loads(pickle.dumps(batch))
    assert isinstance(copied, cdd.Batch)
    assert np.array_equal(copied.array["p"], batch.array["p"])
    assert np.array_equal(
        [w["p"] for w in windows], [PRICE[at : at + 4] for at in range(0, 300, 10)][: len(windows)]
    )
    assert np.array_equal(cdd.Windows(BOOK, 4)[2:4][1], BOOK[3:7])


def test_raw_gives_integers() -> None:
    ml_dtypes = pytest.importorskip("ml_dtypes")
    half = BOOK[:, 0, 0].astype(ml_dtypes.bfloat16)
    members = {"t": opened(TIME), "h": opened(half), "n": TIME}
    found = cdd.Windows(members, 3, raw=True).read([4])
    assert {name: block.dtype for name, block in found.items()} == {
        "t": np.dtype("i8"), "h": np.dtype("u2"), "n": np.dtype("i8"),
    }  # fmt: skip
    assert np.array_equal(found["t"][0], TIME[4:7].view(np.int64))
    assert np.array_equal(found["h"][0], half[4:7].view(np.uint16))
    assert cdd.Windows(opened(half), 3)[4].dtype == ml_dtypes.bfloat16
    several = cdd.Windows([members, members], 3, raw=True)
    assert np.array_equal(several.read([4, 298 + 4])["h"][1], half[4:7].view(np.uint16))


def test_refresh_returns_longer_ones(tmp_path: Path) -> None:
    path = tmp_path / "a.cdd"
    with cdd.open(path, "w") as writer:
        writer.append(BOOK[:100])
        writer.flush()
        time = np.arange(300)
        time[90:] += 1000
        time[150:] += 1000
        windows = cdd.Windows(cdd.open(path), 10, cut=[0, 100, 120, 400], time=time, max_gap=5)
        assert len(windows) == 81 + 1
        writer.append(BOOK[100:])
        writer.flush()
        longer = windows.refresh()
        assert len(windows) == 82
        assert len(longer) == 81 + 1 + 11 + 21 + 141
        assert np.array_equal(longer[-1], BOOK[290:])
        assert np.array_equal(longer.read([81, 82]), [BOOK[90:100], BOOK[100:110]])
        assert len(longer.refresh()) == len(longer)


def test_pickles_beside_a_live_writer(tmp_path: Path) -> None:
    path = tmp_path / "a.cdd"
    with cdd.open(path, "w") as writer:
        writer.append(BOOK[:100])
        writer.flush()
        windows = cdd.Windows({"b": cdd.open(path)}, 10)
        writer.append(BOOK[100:])
        writer.flush()
        copied = pickle.loads(pickle.dumps(windows))
    assert len(copied) == len(windows) == 91
    assert np.array_equal(copied[-1]["b"], BOOK[90:100])
    cdd.save(path, BOOK[::-1].copy())
    with pytest.raises(cdd.FormatError, match="replaced"):
        pickle.loads(pickle.dumps(windows))


def sum_of(windows: cdd.Windows, numbers: list[int]) -> float:
    return float(windows.read(numbers).sum(dtype=np.float64))


@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
def test_other_processes_read_the_same(method: str, tmp_path: Path) -> None:
    if method not in multiprocessing.get_all_start_methods():
        pytest.skip(f"no {method} on this system")
    cdd.save(tmp_path / "a.cdd", BOOK)
    windows = cdd.Windows(cdd.open(tmp_path / "a.cdd"), 10)
    numbers = list(range(0, 290, 5))
    expected = sum_of(windows, numbers)
    with multiprocessing.get_context(method).Pool(2) as pool:
        assert pool.starmap(sum_of, [(windows, numbers)] * 4) == [expected] * 4
        pool.close()
        pool.join()


def test_a_year_with_gaps_keeps_runs_and_not_starts() -> None:
    long = np.lib.stride_tricks.as_strided(np.zeros(1, np.float32), (10**9,), (0,))
    windows = cdd.Windows(long, 64, cut=np.arange(0, 10**9, 3_000_000))
    assert len(windows) == 10**9 - 334 * 63
    assert len(pickle.dumps(windows.where(np.arange(3)))) < 1000
    kept = sum(value.nbytes for value in vars(windows).values() if isinstance(value, np.ndarray))
    assert kept < 20_000
    assert windows.where(len(windows) - 1) == (0, 10**9 - 64)
