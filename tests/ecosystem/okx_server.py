"""A websocket server on the loopback interface that speaks as OKX does, well or badly.

A script is an async function that is given a Talk and sends what it likes; each connection runs one.
"""

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

from websockets.asyncio.server import ServerConnection, serve

from tests.ecosystem.okx_stream import Message, text


class Talk:
    """One connection: what the client asked for, and the means to answer."""

    def __init__(self, socket: ServerConnection, number: int) -> None:
        self.socket, self.number = socket, number
        self.asked: asyncio.Queue[tuple[str, str]] = asyncio.Queue()  # (subscribe, BTC-USDT)
        self.last: Message = {}  # that it sent
        self.stop = asyncio.Event()  # of the recorder
        self.pings = 0
        self.is_silent = False

    async def listen(self) -> None:
        async for message in self.socket:
            if message == "ping":
                self.pings += 1
                if not self.is_silent:
                    await self.socket.send("pong")
                continue
            request = self.last = json.loads(message)
            for arg in request["args"]:
                if not self.is_silent:
                    shown = {"code": "0"} if request["op"] == "login" else {"arg": arg}
                    await self.socket.send(json.dumps({"event": request["op"], "connId": "a", **shown}))
                await self.asked.put((request["op"], arg.get("instId", "")))

    async def subscribed(self) -> str:
        """The next symbol that is subscribed."""
        while True:
            what, symbol = await self.asked.get()
            if what == "subscribe":
                return symbol

    async def send(self, message: Message | str | bytes) -> None:
        await self.socket.send(message if isinstance(message, str | bytes) else text(message))


Script = Callable[[Talk], Awaitable[None]]


@asynccontextmanager
async def exchange_server(script: Script) -> AsyncIterator[tuple[str, list[Talk]]]:
    """(url, connections so far). What a script raises is raised here, too."""
    talks: list[Talk] = []
    errors: list[BaseException] = []

    async def handle(socket: ServerConnection) -> None:
        talk = Talk(socket, len(talks))
        talks.append(talk)
        listening = asyncio.ensure_future(talk.listen())
        try:
            await script(talk)
        except Exception as error:
            if not type(error).__name__.startswith("ConnectionClosed"):
                errors.append(error)
        finally:
            listening.cancel()
            await asyncio.gather(listening, return_exceptions=True)

    async with serve(handle, "127.0.0.1", 0, compression=None) as server:
        yield f"ws://127.0.0.1:{server.sockets[0].getsockname()[1]}", talks
    if errors:
        raise errors[0]
