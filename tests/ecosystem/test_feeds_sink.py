"""A sink: rows of every kind, days, restarts, and what it refuses."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cdd import dataset, feeds
from tests.ecosystem.feeds_rig import GOOD, check, received, sink
from tests.ecosystem.okx_stream import Exchange, SlowBook, replay, text

# ------------------------------------------------------------ rows of other kinds


def test_levels_features_and_dtype(tmp_path: Path) -> None:
    messages = list(Exchange(seed=4).run(60))
    wide = replay(messages, levels=40).array()
    with sink(tmp_path / "a", levels=40) as into:
        for message in messages:
            into.put(message, received(message))
    assert np.array_equal(dataset.open(tmp_path / "a")["book"][:], wide)
    with sink(tmp_path / "b", levels=1, features=("orders", "price")) as into:
        for message in messages:
            into.put(message, received(message))
    assert np.array_equal(dataset.open(tmp_path / "b")["book"][:], wide[:, 39:41][:, :, [2, 0]])
    with sink(tmp_path / "c", dtype="float64") as into:
        for message in messages:
            into.put(message, received(message))
    found = dataset.open(tmp_path / "c")["book"][:]
    assert found.dtype == np.float64
    assert np.array_equal(found.astype(np.float32), wide[:, 15:65])
    best = max((level[0] for level in messages[0]["data"][0]["bids"]), key=float)
    assert found[0, 24, 0] == float(best)


def test_missing_levels_are_zeros_at_the_outer_end() -> None:
    book = feeds.Book(levels=3)
    update = feeds.Update("X", "own", "snapshot", 0, [["9", "1", "", "2"], ["8", 3, "", 4]], [])
    assert book.apply(update) is feeds.Applied.SESSION
    expected = np.zeros((6, 3), np.float32)
    expected[1], expected[2] = (8, 3, 4), (9, 1, 2)
    out = np.ones((6, 3), np.float32)
    assert np.array_equal(book.row(out), expected)
    assert np.array_equal(book.row(), expected)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"levels": 0}, "levels is 0"),
        ({"levels": 401}, "levels is 401"),
        ({"features": ()}, "features are"),
        ({"features": ("price", "price")}, "features are"),
        ({"features": ("volume",)}, "features are"),
        ({"dtype": "int32"}, "dtype of a book"),
        ({"flush_s": 0}, "flush_s"),
        ({"flush_s": "1s"}, "flush_s is seconds above 0, .*not '1s' and"),
        ({"symbol": ""}, "symbol is the name of an instrument"),
        ({"memory_s": 0}, "memory_s"),
        ({"every": "soon"}, "every is a time"),
        ({"every": 0}, "every is a time"),
        ({"roll": "x"}, "roll is a time"),
        ({"keep": "x"}, "keep is a time"),
    ],
)
def test_wrong_options(options: dict[str, Any], words: str, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=words):
        sink(tmp_path / "set", **options)
    assert not (tmp_path / "set").exists()


def test_a_dataset_of_another_book_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "set"
    with sink(path) as into:
        into.put(GOOD, received(GOOD))
        with pytest.raises(BlockingIOError):
            sink(path).put(GOOD)
    for options, words in (
        ({"levels": 10}, r"shape \(50, 3\)"),
        ({"dtype": "float64"}, "of float32"),
        ({"symbol": "ETH-USDT"}, "symbol 'BTC-USDT'"),
        ({"features": ("size", "price", "orders")}, "features"),
    ):
        with pytest.raises(ValueError, match=words):
            sink(path, **options)
    with dataset.open(tmp_path / "other", "w") as w:
        w.append(time=np.arange(3), price=np.zeros(3))
    with pytest.raises(ValueError, match="columns time, price"):
        sink(tmp_path / "other")


def test_it_goes_on_where_it_ended_with_a_session_of_its_own(tmp_path: Path) -> None:
    path = tmp_path / "set"
    slow = SlowBook()
    exchange = Exchange()
    for _ in range(3):
        slow.cut()
        with sink(path) as into:
            for message in exchange.run(20):
                slow.apply(message)
                into.put(message, received(message))
    check(path, slow)
    assert slow.sessions == [0, 20, 40]
    assert dataset.open(path)["sessions"]["reason"].text() == ["start"] * 3


def test_times_that_go_back_stay_where_they_were(tmp_path: Path) -> None:
    messages = list(Exchange().run(6))
    times = [1000, 2000, 1500, 1999, 2000, 3000]
    for message, time in zip(messages, times, strict=True):
        message["data"][0]["ts"] = str(time)
    with sink(tmp_path / "set") as into:
        for message in messages[:3]:
            into.put(message, 10**18)
    with sink(tmp_path / "set") as again:
        again.put(messages[0], 10**18)
        for message in Exchange().run(1):
            message["data"][0]["ts"] = "1700"
            again.put(message, 10**18)
    assert into.counts["time went back"] == 1
    assert again.counts["time went back"] == 2
    found = dataset.open(tmp_path / "set")["time"][:].astype("M8[ms]").astype(np.int64)
    assert found.tolist() == [1000, 2000, 2000, 2000, 2000]


def test_every_keeps_the_last_row_of_each_time(tmp_path: Path) -> None:
    exchange = Exchange(seed=8)
    messages = list(exchange.run(300))
    del messages[150]  # a gap
    messages += exchange.run(100)
    slow = replay(messages)
    periods = np.array(slow.times) // 1000
    part_of = np.searchsorted(slow.sessions, np.arange(len(periods)), "right")
    last = np.flatnonzero(np.append((np.diff(periods) != 0) | (np.diff(part_of) != 0), True))
    with sink(tmp_path / "set", every="1s") as into:
        for number, message in enumerate(messages):
            into.put(message, received(message))
            if number % 7 == 0:
                into.flush()
        assert len(into) == into.counts["rows"] == len(last)
    with dataset.open(tmp_path / "set") as ds:
        assert np.array_equal(ds["book"][:], slow.array()[last])
        assert feeds.sessions(ds).tolist() == np.searchsorted(last, slow.sessions).tolist()
        assert len(last) < len(messages) / 5


def test_files_end_with_the_day_and_are_written_anew(tmp_path: Path) -> None:
    exchange = Exchange(seed=5)
    messages = []
    for message in exchange.run(900):
        messages.append(message)
        exchange.time_ms += 400_000  # 216 rows a day
    with sink(tmp_path / "set", keep=None) as into:
        for number, message in enumerate(messages):
            into.put(message, received(message))
            if number % 5 == 0:
                into.flush()
    check(tmp_path / "set", replay(messages))
    with dataset.open(tmp_path / "set") as ds, dataset.open(tmp_path / "set", as_of=ds.version) as now:
        days = now["time"][:].astype("M8[D]")
        for column in ("book", "time", "received"):
            ends = np.cumsum(now[column]._state.extents[:-1, 2])
            assert (days[ends] != days[ends - 1]).all(), "a file ends within a day"
            assert len(ends) == len(np.unique(days)) - 1
        fragmented = [v.op for v in ds.versions(None)]
        assert fragmented.count("compact") >= 3 * (len(np.unique(days)) - 1)
    with dataset.open(tmp_path / "plain", "w", roll="1D") as w, dataset.open(tmp_path / "set") as ds:
        w.append(ds.read())
    sizes = []
    for name in ("set", "plain"):
        with dataset.open(tmp_path / name) as ds:
            numbers = ds["book"]._state.extents[:-1, 0]
            sizes.append(sum((tmp_path / name / f"data/book/__{n}__.cdd").stat().st_size for n in numbers))
    assert sizes[0] < 1.1 * sizes[1], "a day is stored as if it had come at once"


def test_old_versions_go_when_a_file_ends(tmp_path: Path) -> None:
    exchange = Exchange(seed=5)
    path = tmp_path / "set"
    with sink(path) as into:
        for number, message in enumerate(exchange.run(900)):
            exchange.time_ms += 400_000
            into.put(message, received(message))
            if number % 5 == 0:
                into.flush()
    before = sum(p.stat().st_size for p in path.rglob("*.cdd"))
    assert "expire" in [v.op for v in dataset.open(path).versions(None)]
    dataset.expire(path, keep=1)
    dataset.prune(path)
    assert sum(p.stat().st_size for p in path.rglob("*.cdd")) < before
    assert dataset.open(path).verify().ok


def test_updates_of_ones_own(tmp_path: Path) -> None:
    with sink(tmp_path / "set", features=("price", "size")) as into:
        for number in range(5):
            bids = [(100 - number, 2.5)]
            update = feeds.Update("BTC-USDT", "depth", "whole", 10**18 + number, bids, [(101, 1)])
            into.put(update, 10**18)
    with dataset.open(tmp_path / "set") as ds:
        assert ds["book"].shape == (5, 50, 2)
        assert ds["book"][:, 24, 0].tolist() == [100, 99, 98, 97, 96]


def test_a_closed_sink_says_so(tmp_path: Path) -> None:
    into = sink(tmp_path / "set")
    into.put(GOOD, received(GOOD))
    into.close()
    into.close()
    assert into.closed
    with pytest.raises(ValueError, match="is closed"):
        into.put(GOOD)
    assert json.loads(text(GOOD)) == GOOD


def test_books_of_ones_own_may_be_deep_and_channels_are_cut() -> None:
    levels = [(price, 1, None, 1) for price in range(1, 1001)]
    book = feeds.Book(levels=400)
    book.apply(feeds.Update("X", "own", "snapshot", 0, levels, []))
    gone = [(price, 0, None, 0) for price in range(601, 1001)]
    book.apply(feeds.Update("X", "own", "update", 0, gone, []))
    assert book.row()[399, 0] == 600
    assert book.row()[0, 0] == 201
    book.apply(feeds.Update("X", "books", "snapshot", 0, levels, [], depth=400))
    book.apply(feeds.Update("X", "books", "update", 0, gone[100:], [], depth=400))
    assert book.row()[399, 0] == 700
    assert (book.row()[:300] == 0).all(), "what was beyond the channel's depth is not known"
