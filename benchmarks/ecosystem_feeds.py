"""Collecting: CPU of a message with all that becomes of it, of 200 books at once, and stored bytes."""

import asyncio
import json
import multiprocessing as mp
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

sys.path.append(str(Path(__file__).resolve().parent.parent))

from goals import Goal

from cdd import dataset, feeds
from tests.ecosystem.okx_stream import Exchange, text

MESSAGES = 20_000
BOOKS, SECONDS, RATE = 200, 30, 10
DAY_MS = 86_400_000


def messages(count: int, **options: Any) -> list[str]:
    """Of 1 to 6 changed levels of a book of 400 a side."""
    return [text(message) for message in Exchange(seed=1, **options).run(count)]


def a_message(folder: Path) -> Goal:
    others = {}
    for name, given in (
        ("with a checksum", messages(MESSAGES)),
        ("without", messages(MESSAGES, with_checksum=False)),
    ):
        costs = []
        for turn in range(3):
            with feeds.Sink(folder / f"{name}{turn}", symbol="BTC-USDT") as sink:
                since = time.process_time()
                for message in given:
                    sink.put(message)
                sink.flush()
                costs.append((time.process_time() - since) / len(given) * 1e6)
            assert sink.counts["rows"] == len(given)
        others[name] = min(costs)
    since = time.thread_time()
    for message in given:
        json.loads(message)
    others["of these json.loads"] = (time.thread_time() - since) / len(given) * 1e6
    what = "CPU of a message, from text to flushed rows (OKX sends no checksums now)"
    return Goal(what, others.pop("without"), "us", at_most=40, others=others)


def serve(books: int, seconds: float, port: Any) -> None:
    """Sends RATE messages a second of each book, evenly."""
    from websockets.asyncio.server import ServerConnection, serve
    from websockets.exceptions import ConnectionClosed

    streams = [messages(int(RATE * seconds), symbol=f"S{n}-USDT", with_checksum=False) for n in range(4)]
    over = asyncio.Event()

    async def handle(socket: ServerConnection) -> None:
        asked = 0
        while asked < books:
            asked += len(json.loads(await socket.recv())["args"])
        since = time.monotonic()
        with suppress(ConnectionClosed):
            for turn in range(int(RATE * seconds)):
                for book in range(books):
                    stream = streams[book % 4]
                    await socket.send(stream[turn].replace(f"S{book % 4}-USDT", f"X{book}-USDT"))
                await asyncio.sleep(max(0, since + (turn + 1) / RATE - time.monotonic()))
        await asyncio.sleep(1)
        over.set()

    async def run() -> None:
        async with serve(handle, "127.0.0.1", 0, compression=None) as server:
            port.value = server.sockets[0].getsockname()[1]
            await over.wait()

    asyncio.run(run())


def many_books(folder: Path) -> Goal:
    """One process collects, another one sends over the loopback interface."""
    context = mp.get_context("spawn")
    port = context.Value("i", 0)
    server = context.Process(target=serve, args=(BOOKS, SECONDS, port))
    server.start()
    while not port.value:
        time.sleep(0.01)
    symbols = [f"X{n}-USDT" for n in range(BOOKS)]
    used: list[tuple[float, float, int]] = []  # CPU, time, rows

    sinks: list[feeds.Sink] = []
    opened = feeds.Sink.__init__

    def opening(self: feeds.Sink, *arguments: Any, **options: Any) -> None:
        opened(self, *arguments, **options)
        sinks.append(self)

    def rows_there() -> int:
        return sum(sink.counts["rows"] for sink in sinks)

    async def run() -> feeds.Report:
        async def measure() -> None:
            await asyncio.sleep(5)  # all are subscribed
            since, begun, before = time.process_time(), time.monotonic(), rows_there()
            await asyncio.sleep(SECONDS - 8)
            cpu, elapsed = time.process_time() - since, time.monotonic() - begun
            used.append((cpu, elapsed, rows_there() - before))

        task = asyncio.ensure_future(measure())
        stop = asyncio.Event()
        task.add_done_callback(lambda _: stop.set())
        url = f"ws://127.0.0.1:{port.value}"
        return await feeds.record(folder / "many", symbols, url=url, stop=stop, flush_s=10, durability="none")

    feeds.Sink.__init__ = opening
    asyncio.run(run())
    feeds.Sink.__init__ = opened
    server.terminate()
    server.join()
    ((cpu, elapsed, rows),) = used
    what = f"share of a core for {BOOKS} books at {RATE} messages a second, flush_s=10, syncs apart"
    others = {
        "messages a second": rows / elapsed,
        "us a message, websocket and flushes too": cpu / rows * 1e6,
    }
    return Goal(what, 100 * cpu / rows * BOOKS * RATE, "%", at_most=20, others=others)


def stored_bytes(folder: Path) -> Goal:
    """Three days of ten rows a flush beside the same rows appended at once."""
    exchange = Exchange(seed=2, with_checksum=False)
    with feeds.Sink(
        folder / "often", symbol="BTC-USDT", flush_s=1e6, memory_s=1e6, durability="none"
    ) as sink:
        for number, message in enumerate(exchange.run(9000)):
            exchange.time_ms += DAY_MS // 3600
            sink.put(message, 2 * 10**18)
            if number % 10 == 9:
                sink.flush()
    with dataset.open(folder / "often") as often:
        ends = often["book"]._state.extents[:-1, 2]
        rows = int(ends.sum())
        days = len(ends)
        with dataset.open(folder / "once", "w", roll="1D") as w:
            w.append(often.read(0, rows))
    before = sum(path.stat().st_size for path in (folder / "often").rglob("*.cdd"))
    dataset.expire(folder / "often", keep=1)
    dataset.prune(folder / "often")

    def of(name: str) -> int:
        """Bytes of the files that hold whole days."""
        with dataset.open(folder / name) as ds:
            numbers = {c: ds[c]._state.extents[:days, 0].tolist() for c in ("time", "received", "book")}
        files = [folder / name / f"data/{c}/__{n}__.cdd" for c, all_of in numbers.items() for n in all_of]
        return sum(path.stat().st_size for path in files)

    others = {"rows": rows, "bytes a row": of("often") / rows, "before pruning": before / rows}
    return Goal("stored bytes after rotation, beside rows appended at once", of("often") / of("once"), "x",
                at_most=1.2, others=others)  # fmt: skip


def measure() -> Iterator[Goal]:
    with tempfile.TemporaryDirectory() as folder:
        yield a_message(Path(folder))
        yield many_books(Path(folder))
        yield stored_bytes(Path(folder))
