"""Recording from a server that closes, cuts, falls silent and refuses; and the command."""

import asyncio
import json
import os
import signal
import subprocess
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("websockets")

from cdd import dataset, feeds
from tests.ecosystem.okx_server import Talk, exchange_server
from tests.ecosystem.okx_stream import Exchange, SlowBook, replay, text
from tests.ecosystem.recording_rig import SYMBOL, arrived, check, recorded_by, short_waits

__all__ = ["short_waits"]


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


def test_a_login_that_is_refused_is_an_error_and_garbage_is_not(tmp_path: Path) -> None:
    async def script(talk: Talk) -> None:
        if talk.number < 3:
            await talk.socket.send(("{", "null", "")[talk.number])
        else:
            await talk.socket.send(json.dumps({"event": "error", "code": "60005", "msg": "Invalid apiKey"}))

    with pytest.raises(ValueError, match="refuses the login: 60005 Invalid apiKey"):
        recorded_by(script, tmp_path, channel="books50-l2-tbt", login=feeds.Login("a", "b", "c"))


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
        ({"url": "file://x"}, "file"),
        ({"levels": 0}, "levels is 0"),
        ({"seconds": -1}, "seconds is a number above 0, not -1"),
        ({"seconds": "5"}, "seconds is a number above 0, not '5'"),
        ({"idle_s": 0}, "idle_s is a number above 0"),
        ({"idle_s": float("nan")}, "idle_s is a number above 0"),
        ({"url": 3}, "url is a str"),
        ({"login": "me"}, "login is a cdd.feeds.Login"),
    ],
)
def test_wrong_arguments(options: dict[str, Any], text: str, tmp_path: Path) -> None:
    given = {"symbols": SYMBOL, "seconds": 5, **options}
    with pytest.raises((ValueError, TypeError), match=text):
        asyncio.run(feeds.record(tmp_path, given.pop("symbols"), **given))


@pytest.mark.skipif(os.name == "nt", reason="signals")
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


@pytest.mark.parametrize(
    ("arguments", "status", "words"),
    [
        (["--channel", "trades"], 2, "channel is one of books, "),
        (["--every", "soon"], 2, 'is a time like "100ms"'),
        (
            ["--url", "ws://127.0.0.1:1", "--seconds", "0.3", "--quiet"],
            1,
            "ws://127.0.0.1:1 was never reached",
        ),
    ],
)
def test_the_command_says_that_nothing_was_kept(
    arguments: list[str], status: int, words: str, tmp_path: Path
) -> None:
    command = [sys.executable, "-P", "-m", "cdd", "record", str(tmp_path / "books"), "BTC-USDT", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert done.returncode == status
    assert words in done.stderr
