"""Messages of OKX into rows: a book and a sink beside a slow book, over streams that are made up or come from
recordings, with every kind of fault."""

import copy
import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cdd import dataset, feeds
from tests.ecosystem.okx_stream import Exchange, Message, SlowBook, replay, text

NS = 1_000_000


def received(message: Message) -> int:
    return int(message["data"][0]["ts"]) * NS + 5


def sink(path: Path, **options: Any) -> feeds.Sink:
    return feeds.Sink(path, **{"symbol": "BTC-USDT", "flush_s": 3600, "memory_s": 3600, **options})


def check(path: Path, slow: SlowBook) -> None:
    """The dataset has the slow book's rows, times and sessions."""
    with dataset.open(path) as ds:
        assert np.array_equal(ds["book"][:], slow.array())
        assert np.array_equal(ds["time"][:].astype(np.int64), np.array(slow.times, np.int64) * NS)
        assert feeds.sessions(ds).tolist() == slow.sessions


@pytest.mark.parametrize("channel", list(feeds.CHANNELS))
def test_rows_are_those_of_a_slow_book(channel: str, tmp_path: Path) -> None:
    messages = list(Exchange(channel=channel, seed=3).run(700))
    slow = replay(messages)
    assert len(slow.rows) == 700
    with sink(tmp_path / "set") as into:
        for number, message in enumerate(messages):
            into.put(text(message) if number % 3 else message, received(message))
            if number % 100 == 50:
                into.flush()
    check(tmp_path / "set", slow)
    assert into.counts == {"rows": 700, "sessions": 1}
    assert not into.rejected
    with dataset.open(tmp_path / "set") as ds:
        assert ds["received"][:].astype(np.int64).tolist() == [received(m) for m in messages]
        assert ds.attrs["symbol"] == "BTC-USDT"
        assert ds["sessions"]["reason"].text() == ["start"]


def broken(messages: list[Message], dice: random.Random) -> list[Message]:
    """The stream with messages that are lost, repeated, in another order, or damaged."""
    made: list[Message] = []
    for message in messages:
        message = copy.deepcopy(message)
        data, what = message["data"][0], dice.random()
        if message["action"] == "update":
            if what < 0.01:
                continue
            if what < 0.02 and made:
                made.append(copy.deepcopy(made[-1]))
            elif what < 0.03 and made:
                made.insert(-1, message)
                continue
            elif what < 0.035:
                data["checksum"] = (data["checksum"] or 1) ^ 5
            elif what < 0.04 and data["bids"]:
                data["bids"][0][0] = "99999999"
        made.append(message)
    return made


@pytest.mark.parametrize("seed", range(6))
def test_faults_cost_what_they_must_and_no_more(seed: int, tmp_path: Path) -> None:
    dice = random.Random(seed)
    exchange = Exchange(seed=seed, channel=dice.choice(feeds_with_updates()), with_checksum=seed % 3 > 0)
    parts = [list(exchange.run(dice.randrange(20, 150))) for _ in range(8)]
    messages = broken([message for part in parts for message in part], dice)
    slow = replay(messages)
    with sink(tmp_path / "set") as into:
        for message in messages:
            into.put(text(message), received(message))
            if dice.random() < 0.05:
                into.flush()
    check(tmp_path / "set", slow)
    counted = {reason: slow.reasons.count(reason) for reason in slow.reasons}
    assert dict(into.rejected) == counted
    assert {"sequence", "waiting"} <= counted.keys()


def feeds_with_updates() -> list[str]:
    return [name for name in feeds.CHANNELS if name not in ("books5", "bbo-tbt")]


def test_numbers_that_begin_anew_are_no_gap(tmp_path: Path) -> None:
    exchange = Exchange()
    messages = list(exchange.run(10))
    exchange.step()
    messages.append(exchange.update(reset=True))
    for _ in range(10):
        exchange.step()
        messages.append(exchange.update())
    with sink(tmp_path / "set") as into:
        for message in messages:
            into.put(message, received(message))
    assert not into.rejected
    check(tmp_path / "set", replay(messages))


def test_a_lost_message_before_a_new_beginning_is_a_gap() -> None:
    exchange = Exchange()
    book = feeds.Book()
    for message in exchange.run(5):
        book.apply(feeds.okx(message)[0])
    exchange.update()
    with pytest.raises(feeds.RejectedError, match="sequence"):
        book.apply(feeds.okx(exchange.update(reset=True))[0])
    assert not book.is_synced


def messages_of(book: np.ndarray, times: np.ndarray) -> list[Message]:
    """Messages that make these rows: changes of the levels that are in a row, others are taken out."""

    def side(levels: np.ndarray) -> dict[str, list[str]]:
        texts = ([np.format_float_positional(item, trim="-") for item in level] for level in levels)
        return {price: [price, size, "0", orders] for price, size, orders in texts if float(size)}

    made: list[Message] = []
    before: list[dict[str, list[str]]] = [{}, {}]
    for number, row in enumerate(book):
        now = [side(row[:25]), side(row[25:])]
        changes = [
            [[price, "0", "0", "0"] for price in old if price not in new]
            + [level for price, level in new.items() if old.get(price) != level]
            for old, new in zip(before, now, strict=True)
        ]
        before = now
        data = {"bids": changes[0], "asks": changes[1], "ts": str(times[number])}
        data |= {"seqId": number + 1, "prevSeqId": number if number else -1}
        arg = {"channel": "books", "instId": "BTC-USDT"}
        made.append({"arg": arg, "action": "update" if number else "snapshot", "data": [data]})
    return made


RECORDINGS = ["okx_ethusd_tick", "okx_uni_swap_tick", "okx_elon_tick", "okx_btcusdt_100ms"]


@pytest.mark.parametrize("name", RECORDINGS)
def test_recorded_books_come_back_bit_for_bit(
    name: str, recorded: Callable[[str], np.ndarray], tmp_path: Path
) -> None:
    rows = recorded(f"lob/{name}")
    bids, asks = rows[:, :25], rows[:, 25:]
    assert (np.diff(bids[..., 0]) > 0).all() and (np.diff(asks[..., 0]) > 0).all()
    messages = messages_of(rows, np.arange(len(rows)) + 1_700_000_000_000)
    with sink(tmp_path / "set") as into:
        for message in messages:
            into.put(text(message), received(message))
    assert into.counts["rows"] == len(rows), into.rejected
    with dataset.open(tmp_path / "set") as ds:
        assert np.array_equal(ds["book"][:].view(np.uint32), rows.view(np.uint32))


# ------------------------------------------------------------ bad input

GOOD = next(Exchange(seed=9).run(1))


def changed(**data: Any) -> Message:
    message = copy.deepcopy(GOOD)
    message["data"][0].update(data)
    return message


BAD: list[tuple[str, Any]] = [
    ("not JSON", "{"),
    ("not JSON", b"\xff\xfe\x00"),
    ("not JSON", "[" * 100_000),
    ("not a book", "3"),
    ("not a book", "[]"),
    ("not a book", "null"),
    ("not a book", {"arg": {"channel": "books"}, "action": "snapshot", "data": []}),
    ("not a book", {**GOOD, "data": [{}]}),
    ("not a book", {**GOOD, "data": 5}),
    ("not a book", {**GOOD, "action": "delete"}),
    ("not a book", {**GOOD, "arg": {"channel": "books", "instId": "ETH-USDT"}}),
    ("not a book", changed(ts="soon")),
    ("unknown channel", {**GOOD, "arg": {"channel": "trades", "instId": "BTC-USDT"}}),
    ("unknown channel", {**GOOD, "arg": {"channel": "x" * 1000, "instId": "BTC-USDT"}}),
    ("level", changed(bids=[["NaN", "1", "0", "1"]])),
    ("level", changed(bids=[["inf", "1", "0", "1"]])),
    ("level", changed(bids=[["1e39", "1", "0", "1"]])),
    ("level", changed(bids=[["0", "1", "0", "1"]])),
    ("level", changed(asks=[["-5", "1", "0", "1"]])),
    ("level", changed(asks=[["5", "-1", "0", "1"]])),
    ("level", changed(asks=[["5", "1", "0", "-1"]])),
    ("level", changed(asks=[["5", "1"]])),
    ("level", changed(asks=[[None, "1", "0", "1"]])),
    ("level", changed(asks=7)),
    ("level", changed(asks=["abc"])),
    ("time", changed(ts="-1")),
    ("time", changed(ts="99999999999999999999")),
    ("crossed", changed(bids=[["100", "1", "0", "1"]], asks=[["99", "1", "0", "1"]], checksum=0)),
    ("crossed", changed(bids=[["100", "1", "0", "1"]], asks=[["100", "1", "0", "1"]], checksum=0)),
    ("checksum", changed(checksum=12345)),
]  # fmt: skip


IDS = [f"{number}-{reason}" for number, (reason, _) in enumerate(BAD)]


@pytest.mark.parametrize(("reason", "message"), BAD, ids=IDS)
def test_bad_messages_are_counted_and_never_raised(reason: str, message: Any, tmp_path: Path) -> None:
    good = list(Exchange(seed=9).run(3))
    with sink(tmp_path / "set") as into:
        into.put(good[0], received(GOOD))
        into.put(message, received(GOOD))
        assert dict(into.rejected) == {reason: 1}
        assert reason in feeds.REASONS
        is_lost = reason in ("level", "time", "crossed", "checksum")
        assert into.needs_snapshot == is_lost
        into.put(good[1], received(GOOD))
        assert into.counts["rows"] == (1 if is_lost else 2)
        into.put(good[0], received(GOOD))
    with dataset.open(tmp_path / "set") as ds:
        assert ds["sessions"]["reason"].text()[1:] == [reason if is_lost else "snapshot"]


@pytest.mark.parametrize("bids", [[["NaN", "1", "0", "1"]], [["9999999", "1", "0", "1"]]])
def test_a_bad_whole_book_costs_its_own_row_alone(bids: Any, tmp_path: Path) -> None:
    messages = list(Exchange(channel="books5").run(5))
    messages[2]["data"][0]["bids"] = bids
    with sink(tmp_path / "set") as into:
        for message in messages:
            into.put(message, received(message))
        assert not into.needs_snapshot
    assert into.counts == {"rows": 4, "sessions": 1}
    assert into.rejected.total() == 1


def test_what_is_not_about_books_is_passed_over() -> None:
    for message in ("pong", b"pong", '{"event":"subscribe","arg":{"channel":"books","instId":"BTC-USDT"}}'):
        assert feeds.okx(message) == []


def test_a_reason_is_logged_at_once_and_then_once_a_minute(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with sink(tmp_path / "set") as into:
        for _ in range(50):
            into.put("{")
    assert into.rejected == {"not JSON": 50}
    assert len([r for r in caplog.records if r.name == "cdd.feeds"]) == 1


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
            bids = [(100 - number, 2.5, None, 0)]
            update = feeds.Update("BTC-USDT", "depth", "whole", 10**18 + number, bids, [(101, 1, None, 0)])
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
