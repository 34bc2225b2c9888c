"""Books over a websocket, as OKX sends them, into a dataset each: connects, subscribes, and does so again
after whatever ends it, until it is told to stop or the disk fails.

It needs the package websockets, which is imported here and nowhere else.
"""

import asyncio
import base64
import hmac
import json
import random
import re
import time
from collections import Counter
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from cdd import aio, arguments
from cdd.feeds.okx import CHANNELS
from cdd.feeds.rejected import RejectedError, Rejections
from cdd.feeds.sink import Sink
from cdd.feeds.spool import LOGGER

try:
    from websockets.asyncio.client import ClientConnection, connect
    from websockets.exceptions import ConnectionClosed, InvalidHandshake, InvalidURI
except ModuleNotFoundError as error:
    raise ImportError('cdd.feeds.record needs websockets: pip install "websockets>=13"') from error

URL = "wss://ws.okx.com:8443/ws/v5/public"
_A_REQUEST = 50  # subscriptions in one
_FLUSHES = 4  # at once
_TICK_S = 0.1
_ASK_S = (5.0, 60.0)  # between two requests for a book's snapshot: doubled from to
_CONNECT_S = (0.5, 60.0)  # between two connections
_BUSY = ("60014", "63999")  # codes of errors that go by


class Login(NamedTuple):
    """What the channels for VIP accounts ask for. Its repr has no secrets."""

    key: str
    secret: str
    passphrase: str

    def __repr__(self) -> str:
        return "Login(...)"

    def message(self) -> str:
        now = str(int(time.time()))
        signed = hmac.digest(self.secret.encode(), f"{now}GET/users/self/verify".encode(), "sha256")
        args = {"apiKey": self.key, "passphrase": self.passphrase, "timestamp": now}
        return json.dumps({"op": "login", "args": [{**args, "sign": base64.b64encode(signed).decode()}]})


@dataclass
class Report:
    """What record() did: rows kept and messages rejected of each symbol, by reason; connections that were
    opened; symbols that the exchange refused, with its words."""

    rows: dict[str, int] = field(default_factory=dict)
    counts: dict[str, Counter[str]] = field(default_factory=dict)
    rejected: dict[str, Counter[str]] = field(default_factory=dict)
    connections: int = 0
    refused: dict[str, str] = field(default_factory=dict)

    def __str__(self) -> str:
        rows = sum(self.rows.values())
        lines = [f"{rows:,} rows of {len(self.rows)} books, {self.connections} connections"]
        for symbol, rows in self.rows.items():
            rejected = "".join(f", {count:,} {reason}" for reason, count in self.rejected[symbol].items())
            lines.append(f"{symbol}: {rows:,} rows, {self.counts[symbol]['sessions']} sessions{rejected}")
        lines += [f"{symbol}: refused, {text}" for symbol, text in self.refused.items()]
        return "\n".join(lines)


async def record(
    folder: Any,
    symbols: Iterable[str],
    *,
    channel: str = "books",
    url: str = URL,
    seconds: float | None = None,
    stop: asyncio.Event | None = None,
    login: Login | None = None,
    idle_s: float = 20.0,
    **options: Any,
) -> Report:
    """Keeps the books of these symbols, each in a dataset folder/SYMBOL, until `stop` is set or `seconds` are
    over. Cancelled, it also writes what waits.

    channel   one of CHANNELS; books-l2-tbt and books50-l2-tbt need a login
    url       of the websocket
    idle_s    after so long without a message it asks whether anybody is there, and after twice as long it
              connects anew
    options   of Sink

    A book that cannot be trusted any more is subscribed anew, a lost connection is opened anew, both with
    waits that double up to a minute. Raises ValueError for arguments and where the exchange refuses all
    symbols or the login, and what Sink raises when the disk has failed for too long.
    """
    if channel not in CHANNELS:
        raise ValueError(f"channel is one of {', '.join(CHANNELS)}, not {channel!r}")
    for name, span in {"seconds": seconds, "idle_s": idle_s}.items():
        if span is not None and not arguments.is_positive(span):
            raise ValueError(f"{name} is a number above 0, not {arguments.shown(span)}")
    if login is not None and not isinstance(login, Login):
        raise TypeError(f"login is a cdd.feeds.Login, not {type(login).__name__}")
    names = [symbols] if isinstance(symbols, str) else list(symbols)
    for name in names:
        if not isinstance(name, str) or not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]*", name):
            raise ValueError(f"a symbol is a name like BTC-USDT, not {name!r}")
    if not names or len(set(names)) < len(names):
        raise ValueError("symbols are names, at least one and each once")
    recorder = _Recorder(arguments.text("url", url), channel, login, idle_s)
    try:
        for name in names:
            opening = partial(Sink, Path(folder, name), symbol=name, **options)
            recorder.sinks[name] = await aio.in_thread(opening, Sink.close)
        await recorder.run(seconds, stop or asyncio.Event())
    finally:
        await recorder.close()
    return recorder.report()


def _read(text: str | bytes) -> dict[str, Any] | None:
    """A message that is a JSON object, None for others."""
    try:
        found = json.loads(text)
    except (RecursionError, ValueError):
        return None
    return found if isinstance(found, dict) else None


class _Asking:
    """When a book may be asked for again."""

    def __init__(self) -> None:
        self._asked, self._wait = time.monotonic(), _ASK_S[0]

    def is_due(self, needs_snapshot: bool) -> bool:
        waited = time.monotonic() - self._asked
        if not needs_snapshot:
            if waited > 2 * self._wait:
                self._wait = _ASK_S[0]
            return False
        if waited < self._wait:
            return False
        self._asked, self._wait = self._asked + waited, min(2 * self._wait, _ASK_S[1])
        return True


class _Recorder:
    def __init__(self, url: str, channel: str, login: Login | None, idle_s: float) -> None:
        self.url, self.channel, self.login, self.idle_s = url, channel, login, idle_s
        self.sinks: dict[str, Sink] = {}
        self.rejected = Rejections(url, LOGGER)  # of no symbol
        self.connections = 0
        self.refused: dict[str, str] = {}
        self._is_accepted = False
        self._heard = 0.0
        self._asking: dict[str, _Asking] = {}

    def report(self) -> Report:
        made = Report(connections=self.connections, refused=dict(self.refused))
        for symbol, sink in self.sinks.items():
            made.rows[symbol], made.counts[symbol] = sink.counts["rows"], Counter(sink.counts)
            made.rejected[symbol] = Counter(sink.rejected)
        if self.rejected:
            made.rejected[""] = Counter(self.rejected)
        return made

    async def run(self, seconds: float | None, stop: asyncio.Event) -> None:
        tasks = {asyncio.ensure_future(work) for work in (self._flush(), self._connect(), stop.wait())}
        try:
            done, _ = await asyncio.wait(tasks, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
            for task in done:
                task.result()
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def close(self) -> None:
        """Closes all sinks, whatever fails, and raises the first failure."""
        ends = await asyncio.gather(*(sink.aclose() for sink in self.sinks.values()), return_exceptions=True)
        for error in ends:
            if isinstance(error, BaseException):
                raise error

    async def _flush(self) -> None:
        """Flushes the sinks that are due, off the loop."""
        limit = asyncio.Semaphore(_FLUSHES)

        async def flush(sink: Sink) -> None:
            async with limit:
                await aio.in_thread(sink.flush)

        while True:
            await asyncio.sleep(_TICK_S)
            await asyncio.gather(*(flush(sink) for sink in self.sinks.values() if sink.is_due))

    # ------------------------------------------------------------ connections

    async def _connect(self) -> None:
        wait = _CONNECT_S[0]
        while True:
            before = sum(sink.counts["rows"] for sink in self.sinks.values())
            text = "it was closed"
            try:
                # Messages wait in the socket, not here, while the disk does not keep up.
                async with connect(
                    self.url, compression=None, ping_interval=None, close_timeout=2, max_size=1 << 22
                ) as socket:
                    self.connections += 1
                    LOGGER.info("connected to %s", self.url)
                    await self._serve(socket)
            except (OSError, TimeoutError, ConnectionClosed, InvalidHandshake) as error:
                text = str(error)
            except InvalidURI as error:
                raise ValueError(str(error)) from None
            for sink in self.sinks.values():
                sink.lose("connection")
            if sum(sink.counts["rows"] for sink in self.sinks.values()) > before:
                wait = _CONNECT_S[0]
            seconds, wait = wait * random.uniform(0.7, 1), min(2 * wait, _CONNECT_S[1])
            LOGGER.warning("the connection to %s is lost, the next in %.1f s: %s", self.url, seconds, text)
            await asyncio.sleep(seconds)

    async def _serve(self, socket: ClientConnection) -> None:
        self._heard = time.monotonic()
        if self.login is not None:
            await socket.send(self.login.message())
            async with asyncio.timeout(self.idle_s):
                text = await socket.recv()
            answer = _read(text)
            if answer is None:
                raise ConnectionResetError(f"the answer to the login is {str(text)[:60]!r}")
            if answer.get("event") != "login" or str(answer.get("code")) != "0":
                raise ValueError(f"{self.url} refuses the login: {answer.get('code')} {answer.get('msg')}")
        names = [name for name in self.sinks if name not in self.refused]
        for at in range(0, len(names), _A_REQUEST):
            await self._ask(socket, "subscribe", names[at : at + _A_REQUEST])
        self._asking = {name: _Asking() for name in names}
        tending = asyncio.ensure_future(self._tend(socket))
        try:
            async for text in socket:
                self._heard = time.monotonic()
                sink = self._take(text)
                while sink is not None and sink.is_behind:
                    await asyncio.sleep(_TICK_S)  # the socket fills up meanwhile, and the exchange waits
        except asyncio.CancelledError:
            await socket.close()  # as one who goes, not as one who failed
            raise
        finally:
            tending.cancel()
            with suppress(asyncio.CancelledError, ConnectionClosed):
                await tending

    async def _ask(self, socket: ClientConnection, what: str, names: list[str]) -> None:
        args = [{"channel": self.channel, "instId": name} for name in names]
        await socket.send(json.dumps({"op": what, "args": args}))

    async def _tend(self, socket: ClientConnection) -> None:
        """Asks for books that are lost, and whether anybody is there."""
        asked = False
        while True:
            await asyncio.sleep(_TICK_S)
            now = time.monotonic()
            silence = now - self._heard
            if silence < self.idle_s:
                asked = False
            elif silence > 2 * self.idle_s:
                LOGGER.warning("%s: nothing was heard for %.0f s", self.url, silence)
                await socket.close()
                return
            elif not asked:
                asked = True
                await socket.send("ping")
            lost = [
                name
                for name, asking in self._asking.items()
                if asking.is_due(self.sinks[name].needs_snapshot) and name not in self.refused
            ]
            for at in range(0, len(lost), _A_REQUEST):
                await self._ask(socket, "unsubscribe", lost[at : at + _A_REQUEST])
                await self._ask(socket, "subscribe", lost[at : at + _A_REQUEST])

    # ------------------------------------------------------------ messages

    def _take(self, text: str | bytes) -> Sink | None:
        """Gives a message to its sink, which is returned; None for one that belongs to none."""
        received = time.time_ns()
        if text == "pong":
            return None
        try:
            message = json.loads(text)
        except (RecursionError, ValueError) as error:
            self.rejected.add(RejectedError("not JSON", str(error)))
            return None
        try:
            if "event" in message:
                self._event(message)
                return None
            symbol = message["arg"]["instId"]
        except (KeyError, TypeError) as error:
            self.rejected.add(RejectedError("not a book", f"{type(error).__name__} {error}"))
            return None
        sink = self.sinks.get(symbol) if isinstance(symbol, str) else None
        if sink is None:
            text = f"of {str(symbol)[:40]!r}, which was not asked for"
            self.rejected.add(RejectedError("not a book", text))
            return None
        sink.take(message, received)
        return sink

    def _event(self, message: dict[str, Any]) -> None:
        event, code, text = message["event"], str(message.get("code")), str(message.get("msg"))
        if event == "subscribe":
            self._is_accepted = True
        elif event == "notice":
            raise ConnectionResetError(f"the exchange says: {code} {text}")
        elif event == "error":
            LOGGER.warning("%s: error %s %s", self.url, code, text)
            if code in _BUSY:
                return
            named = re.search(r"instId:\s*([A-Za-z0-9._-]+)", text)
            arg = message.get("arg")
            symbol = arg.get("instId") if isinstance(arg, dict) else named[1].rstrip(".") if named else None
            if symbol in self.sinks:
                self.refused[symbol] = f"{code} {text}"
            if len(self.refused) == len(self.sinks) or (symbol is None and not self._is_accepted):
                raise ValueError(f"{self.url} refuses: {code} {text}")
