"""Messages of OKX into rows: a book and a sink beside a slow book, over streams that are made up or come from
recordings, with every kind of fault."""

import copy
import random
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cdd import dataset, feeds
from tests.ecosystem.feeds_rig import GOOD, check, received, sink
from tests.ecosystem.okx_stream import Exchange, Message, replay, text


@pytest.mark.parametrize("channel", list(feeds.CHANNELS))
def test_rows_are_those_of_a_slow_book(channel: str, tmp_path: Path) -> None:
    messages = list(Exchange(channel=channel, seed=3).run(450))
    slow = replay(messages)
    assert len(slow.rows) == 450
    with sink(tmp_path / "set") as into:
        for number, message in enumerate(messages):
            into.put(text(message) if number % 3 else message, received(message))
            if number % 100 == 50:
                into.flush()
    check(tmp_path / "set", slow)
    assert into.counts == {"rows": 450, "sessions": 1}
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
            elif what < 0.035 and data["checksum"]:
                data["checksum"] ^= 5
            elif what < 0.04 and data["bids"]:
                data["bids"][0][0] = "99999999"
        made.append(message)
    return made


@pytest.mark.parametrize("seed", range(4))
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


def test_a_message_without_changes_is_a_row(tmp_path: Path) -> None:
    """OKX sends one after 60 s without changes; its number is that of the message before."""
    exchange = Exchange()
    messages = list(exchange.run(5))
    for _ in range(2):
        again = exchange.update()
        again["data"][0]["seqId"] = exchange.seq = again["data"][0]["prevSeqId"]
        messages.append(again)
    exchange.step()
    messages.append(exchange.update())
    with sink(tmp_path / "set") as into:
        for message in messages:
            into.put(message, received(message))
    assert into.counts == {"rows": 8, "sessions": 1}
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


def changed(**data: Any) -> Message:
    message = copy.deepcopy(GOOD)
    message["data"][0].update(data)
    return message


BAD: list[tuple[str, Any]] = [
    ("not JSON", "{"),
    ("not JSON", b"\xff\xfe\x00"),
    ("not JSON", "[" * 100_000),
    ("not JSON", "1" * 5000),
    ("not JSON", None),
    ("not JSON", 3),
    ("not a book", "3"),
    ("not a book", "[]"),
    ("not a book", "null"),
    ("not a book", {"arg": {"channel": "books"}, "action": "snapshot", "data": []}),
    ("not a book", {**GOOD, "data": [{}]}),
    ("not a book", {**GOOD, "data": 5}),
    ("not a book", {**GOOD, "action": "delete"}),
    ("not a book", {**GOOD, "arg": {"channel": "books", "instId": "ETH-USDT"}}),
    ("not a book", changed(ts="soon")),
    ("not a book", changed(ts=float("inf"))),
    ("not a book", changed(ts=float("nan"))),
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


@pytest.mark.parametrize(
    ("message", "reason", "words"),
    [
        ({"event": "error", "code": "60012", "msg": "Invalid request"}, "error", "'60012' 'Invalid request'"),
        (12, "not JSON", "text, bytes or a dict is expected, not 12"),
        ([1], "not JSON", r"expected, not \[1\]"),
    ],
)
def test_what_is_no_book_is_counted_and_said(
    message: Any, reason: str, words: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with pytest.raises(feeds.RejectedError, match=words):
        feeds.okx(message)
    with sink(tmp_path / "set") as into:
        into.put({"event": "subscribe", "arg": {}})
        into.put(message)
    assert dict(into.rejected) == {reason: 1}
    assert reason in feeds.REASONS
    assert reason in caplog.text


def test_a_short_level_is_shown_with_what_is_missing() -> None:
    for features, level, wanted in (
        (feeds.FEATURES, ["1", "2"], "orders"),
        (("price", "size"), ["1"], "size"),
    ):
        book = feeds.Book(2, features)
        update = feeds.Update("a", "books", "whole", 0, [level], [])
        with pytest.raises(
            feeds.RejectedError, match=rf"level: {re.escape(str(level))} is too short for .*{wanted}"
        ):
            book.apply(update)


def test_sessions_of_what_no_feed_was_kept_in(tmp_path: Path) -> None:
    with dataset.open(tmp_path / "set", "w") as w:
        w.append(x=[1, 2])
    with dataset.open(tmp_path / "set") as ds, pytest.raises(ValueError, match="no table 'sessions'"):
        feeds.sessions(ds)
    with sink(tmp_path / "new"):
        pass
    with dataset.open(tmp_path / "new") as ds:
        assert feeds.sessions(ds).tolist() == []
