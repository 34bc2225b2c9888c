"""What tests of recording share: record() beside a server on the loopback interface."""

import asyncio
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cdd import dataset, feeds
from cdd.feeds import recording
from tests.ecosystem.okx_server import Script, Talk, exchange_server
from tests.ecosystem.okx_stream import SlowBook

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
