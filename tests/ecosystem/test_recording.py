"""Recording over a websocket from a server that sends what is right, wrong, and out of order."""

import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("websockets")

from cdd import dataset
from tests.ecosystem.okx_server import Talk
from tests.ecosystem.okx_stream import Exchange, Message, SlowBook, replay, text
from tests.ecosystem.recording_rig import SYMBOL, arrived, check, recorded_by, short_waits

__all__ = ["short_waits"]


def test_several_books_over_one_connection(tmp_path: Path) -> None:
    symbols = ["BTC-USDT", "ETH-USDT", "SOL-USDT-SWAP"]
    streams = {name: list(Exchange(name, seed=n).run(80)) for n, name in enumerate(symbols)}

    async def script(talk: Talk) -> None:
        assert [await talk.subscribed() for _ in symbols] == symbols
        for messages in zip(*streams.values(), strict=True):
            for message in messages:
                await talk.send(message)
        await arrived(talk)

    report = recorded_by(script, tmp_path, symbols)
    assert report.rows == dict.fromkeys(symbols, 80)
    assert report.connections == 1
    assert not report.refused
    for name in symbols:
        check(tmp_path / name, replay(streams[name]))
    assert "240 rows of 3 books" in str(report)


@pytest.mark.parametrize("channel", ["books50-l2-tbt", "books5", "bbo-tbt"])
def test_other_channels(channel: str, tmp_path: Path) -> None:
    messages = list(Exchange(channel=channel).run(50))

    async def script(talk: Talk) -> None:
        await talk.subscribed()
        for message in messages:
            await talk.send(message)
        await arrived(talk)

    recorded_by(script, tmp_path, channel=channel)
    check(tmp_path / SYMBOL, replay(messages))


def lose_one(messages: list[Message]) -> list[Message]:
    return messages[:20] + messages[21:]


def swap_two(messages: list[Message]) -> list[Message]:
    return [*messages[:20], messages[21], messages[20], *messages[22:]]


def wrong_checksum(messages: list[Message]) -> list[Message]:
    messages[20]["data"][0]["checksum"] += 1
    return messages


def crossed(messages: list[Message]) -> list[Message]:
    messages[20]["data"][0]["bids"].append(["9999999", "1", "0", "1"])
    return messages


def not_a_number(messages: list[Message]) -> list[Message]:
    messages[20]["data"][0]["asks"].append(["NaN", "1", "0", "1"])
    return messages


@pytest.mark.parametrize(
    ("break_stream", "reason"),
    [(lose_one, "sequence"), (swap_two, "sequence"), (wrong_checksum, "checksum"), (crossed, "crossed"),
     (not_a_number, "level")],
    ids=lambda value: getattr(value, "__name__", None),
)  # fmt: skip
def test_a_book_that_is_lost_is_asked_for_again(
    break_stream: Callable[[list[Message]], list[Message]], reason: str, tmp_path: Path
) -> None:
    exchange = Exchange(seed=1)
    first = break_stream(list(exchange.run(30)))
    later = list(exchange.run(40))

    async def script(talk: Talk) -> None:
        await talk.subscribed()
        for message in first:
            await talk.send(message)
        assert await talk.asked.get() == ("unsubscribe", SYMBOL)
        await talk.subscribed()
        for message in later:
            await talk.send(message)
        await arrived(talk)

    report = recorded_by(script, tmp_path)
    slow = SlowBook()
    for message in first:
        if reason == "level" and "NaN" in text(message):
            slow.lose("level")
        else:
            slow.apply(message)
    for message in later:
        slow.apply(message)
    check(tmp_path / SYMBOL, slow)
    assert report.rejected[SYMBOL][reason] == 1
    assert report.connections == 1
    assert dataset.open(tmp_path / SYMBOL)["sessions"]["reason"].text() == ["start", reason]


def test_asking_goes_on_until_a_snapshot_comes_and_ever_less_often(tmp_path: Path) -> None:
    times: list[float] = []

    async def script(talk: Talk) -> None:
        for _ in range(5):
            await talk.subscribed()
            times.append(time.monotonic())
        for message in Exchange().run(10):
            await talk.send(message)
        await arrived(talk)

    report = recorded_by(script, tmp_path)
    assert report.rows == {SYMBOL: 10}
    waits = np.diff(times)
    assert (waits[1:] > 1.3 * waits[:-1]).all(), waits


GARBAGE: list[str | bytes] = [
    "", "{", "null", "3", "[]", "\0\0", b"\xff\xfe", "[" * 100_000, "1" * 5000, '{"arg": 5}',
    '{"arg": {"instId": []}}',
    '{"arg": {"channel": "books", "instId": "DOGE-USDT"}, "data": []}', '{"data": [], "arg": null}',
]  # fmt: skip


def test_garbage_is_counted(tmp_path: Path) -> None:
    messages = list(Exchange().run(40))

    async def script(talk: Talk) -> None:
        await talk.subscribed()
        for number, message in enumerate(messages):
            await talk.send(message)
            if number < len(GARBAGE):
                await talk.send(GARBAGE[number])
        await arrived(talk)

    report = recorded_by(script, tmp_path)
    assert report.rejected[""].total() == len(GARBAGE)
    assert report.rejected[""]["not JSON"] == 6
    assert not report.rejected[SYMBOL]
    check(tmp_path / SYMBOL, replay(messages))
