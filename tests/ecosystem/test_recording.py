"""Recording over a websocket from a server on the loopback interface that delays, cuts, lies and closes."""

import asyncio
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("websockets")

from cdd import dataset, feeds
from cdd.feeds import recording
from tests.ecosystem.okx_server import Script, Talk, exchange_server
from tests.ecosystem.okx_stream import Exchange, Message, SlowBook, replay, text

SYMBOL = "BTC-USDT"


@pytest.fixture(autouse=True)
def short_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recording, "_ASK_S", (0.05, 0.4))
    monkeypatch.setattr(recording, "_CONNECT_S", (0.02, 0.2))
    monkeypatch.setattr(recording, "_TICK_S", 0.01)


def recorded_by(script: Script, folder: Path, symbols: Any = SYMBOL, **options: Any) -> feeds.Report:
    """What record() reports of a server that runs this script, which sets talk.stop when it is through."""

    async def run() -> feeds.Report:
        stop = asyncio.Event()

        async def with_stop(talk: Talk) -> None:
            talk.stop = stop
            await script(talk)
            await talk.socket.wait_closed()

        async with exchange_server(with_stop) as (url, _), asyncio.timeout(60):
            return await feeds.record(
                folder, symbols, **{"url": url, "stop": stop, "flush_s": 0.05, **options}
            )

    return asyncio.run(run())


async def arrived(talk: Talk) -> None:
    """Time for what was sent to be read; then the recorder is stopped."""
    await talk.socket.ping()
    await asyncio.sleep(0.2)
    talk.stop.set()


def check(path: Path, slow: SlowBook) -> None:
    with dataset.open(path) as ds:
        assert np.array_equal(ds["book"][:], slow.array())
        assert (ds["time"][:].astype("M8[ms]").astype(np.int64) == slow.times).all()
        assert feeds.sessions(ds).tolist() == slow.sessions


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
    "", "{", "null", "3", "[]", "\0\0", b"\xff\xfe", "[" * 100_000, '{"arg": 5}', '{"arg": {"instId": []}}',
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
    assert report.rejected[""]["not JSON"] == 5
    assert not report.rejected[SYMBOL]
    check(tmp_path / SYMBOL, replay(messages))


async def close(talk: Talk, code: int) -> None:
    await talk.socket.close(code, "go")


async def cut(talk: Talk, _: int) -> None:
    talk.socket.transport.abort()


async def cut_in_a_frame(talk: Talk, _: int) -> None:
    talk.socket.transport.write(b'\x81\x7e\x04\x00{"arg":')
    await asyncio.sleep(0.05)
    talk.socket.transport.abort()


async def bad_frame(talk: Talk, _: int) -> None:
    talk.socket.transport.write(b"\xff\xff\xff\xff")


async def too_long(talk: Talk, _: int) -> None:
    await talk.socket.send("x" * (5 << 20))


async def notice(talk: Talk, _: int) -> None:
    await talk.socket.send(json.dumps({"event": "notice", "code": "64008", "msg": "Please reconnect."}))


@pytest.mark.parametrize(
    ("end", "code"),
    [(close, 1000), (close, 1001), (close, 1006 - 3), (close, 4004), (close, 4008), (cut, 0),
     (cut_in_a_frame, 0), (bad_frame, 0), (too_long, 0), (notice, 0)],
    ids=lambda value: getattr(value, "__name__", str(value)),
)  # fmt: skip
def test_a_lost_connection_is_opened_again(
    end: Callable[[Talk, int], Awaitable[None]], code: int, tmp_path: Path
) -> None:
    exchange = Exchange(seed=6)
    slow = SlowBook()

    async def script(talk: Talk) -> None:
        await talk.subscribed()
        slow.cut()
        for message in exchange.run(30):
            slow.apply(message)
            await talk.send(message)
        if talk.number < 3:
            await end(talk, code)
        else:
            await arrived(talk)

    report = recorded_by(script, tmp_path)
    assert report.connections == 4
    check(tmp_path / SYMBOL, slow)
    assert slow.sessions == [0, 30, 60, 90]
    reasons = dataset.open(tmp_path / SYMBOL)["sessions"]["reason"].text()
    assert reasons == ["start"] + ["connection"] * 3


def test_a_server_that_says_nothing_is_asked_and_then_left(tmp_path: Path) -> None:
    talks: list[Talk] = []

    async def script(talk: Talk) -> None:
        talks.append(talk)
        await talk.subscribed()
        talk.is_silent = talk.number == 1
        if talk.number < 2:
            for message in Exchange(seed=talk.number).run(5):
                await talk.send(message)
            if talk.number == 0:
                await asyncio.sleep(0.5)  # it answers pings: the connection stays
                await talk.socket.close()
            return
        await arrived(talk)

    report = recorded_by(script, tmp_path, idle_s=0.1)
    assert report.connections == 3
    assert report.rows == {SYMBOL: 10}
    assert talks[0].pings >= 2
    assert talks[1].pings == 1


def test_messages_that_come_slowly_and_in_pieces(tmp_path: Path) -> None:
    messages = list(Exchange().run(12))

    async def script(talk: Talk) -> None:
        await talk.subscribed()
        for message in messages:
            raw = text(message)

            async def pieces(raw: str = raw) -> Any:
                for at in range(0, len(raw), 1 + len(raw) // 4):
                    yield raw[at : at + 1 + len(raw) // 4]
                    await asyncio.sleep(0.005)

            await talk.socket.send(pieces())
        await arrived(talk)

    recorded_by(script, tmp_path)
    check(tmp_path / SYMBOL, replay(messages))


def error(code: str, message: str) -> str:
    return json.dumps({"event": "error", "code": code, "msg": message, "connId": "a"})


def test_a_symbol_that_is_refused_is_reported_and_the_others_go_on(tmp_path: Path) -> None:
    messages = list(Exchange().run(10))

    async def script(talk: Talk) -> None:
        for _ in range(2):
            await talk.subscribed()
        await talk.send(error("60018", "Wrong URL or channel:books,instId:NO-SUCH doesn't exist."))
        await talk.send(error("60014", "Requests too frequent"))
        for message in messages:
            await talk.send(message)
        await arrived(talk)

    report = recorded_by(script, tmp_path, [SYMBOL, "NO-SUCH"])
    assert list(report.refused) == ["NO-SUCH"]
    assert report.rows == {SYMBOL: 10, "NO-SUCH": 0}
    assert "60018" in str(report)


def test_an_exchange_that_refuses_everything_is_an_error(tmp_path: Path) -> None:
    async def script(talk: Talk) -> None:
        await talk.subscribed()
        await talk.send(error("60018", f"Wrong URL or channel:books,instId:{SYMBOL} doesn't exist."))

    with pytest.raises(ValueError, match="refuses: 60018"):
        recorded_by(script, tmp_path)


def test_login(tmp_path: Path) -> None:
    login = feeds.Login("key", "my-secret", "my-words")
    assert "my-" not in repr(login)
    messages = list(Exchange(channel="books50-l2-tbt").run(10))
    logins: list[dict[str, str]] = []

    async def script(talk: Talk) -> None:
        await asyncio.sleep(0)
        what, _ = await talk.asked.get()
        assert what == "login"
        logins.append(talk.last["args"][0])
        assert await talk.subscribed() == SYMBOL
        for message in messages:
            await talk.send(message)
        await arrived(talk)

    recorded_by(script, tmp_path, channel="books50-l2-tbt", login=login)
    check(tmp_path / SYMBOL, replay(messages))
    (sent,) = logins
    assert sent["apiKey"] == "key"
    assert len(sent["sign"]) == 44
    assert "my-secret" not in json.dumps(sent)


def test_a_disk_that_fails_ends_it_with_its_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def script(talk: Talk) -> None:
        await talk.subscribed()
        for message in Exchange().run(1000):
            await talk.send(message)
            await asyncio.sleep(0.01)

    def full(*_: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("cdd.store.writer.Writer.flush", full)
    with pytest.raises(OSError, match="No space"):
        recorded_by(script, tmp_path, memory_s=0.3)


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"symbols": []}, "at least one"),
        ({"symbols": ["A", "A"]}, "each once"),
        ({"symbols": "../x"}, "a symbol is"),
        ({"channel": "trades"}, "channel is one of"),
        ({"url": "http://x"}, "http"),
        ({"levels": 0}, "levels is 0"),
    ],
)
def test_wrong_arguments(options: dict[str, Any], text: str, tmp_path: Path) -> None:
    given = {"symbols": SYMBOL, "seconds": 5, **options}
    with pytest.raises(ValueError, match=text):
        asyncio.run(feeds.record(tmp_path, given.pop("symbols"), **given))


def test_the_command_until_it_is_terminated(tmp_path: Path) -> None:
    messages = list(Exchange().run(30))
    command = [sys.executable, "-P", "-m", "cdd", "record", str(tmp_path), SYMBOL, "--flush", "0.1", "--url"]

    async def run() -> tuple[int | None, str, str]:
        sent = asyncio.Event()

        async def script(talk: Talk) -> None:
            await talk.subscribed()
            for message in messages:
                await talk.send(message)
            sent.set()
            await talk.socket.wait_closed()

        async with exchange_server(script) as (url, _), asyncio.timeout(60):
            child = await asyncio.create_subprocess_exec(
                *command, url, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=os.environ
            )
            await sent.wait()
            await asyncio.sleep(0.3)
            child.send_signal(signal.SIGTERM)
            out, err = await child.communicate()
            return child.returncode, out.decode(), err.decode()

    code, out, err = asyncio.run(run())
    assert code == 0, err
    assert f"{SYMBOL}: 30 rows, 1 sessions" in out
    check(tmp_path / SYMBOL, replay(messages))
