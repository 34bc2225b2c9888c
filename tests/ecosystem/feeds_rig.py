"""What tests of feeds share."""

from pathlib import Path
from typing import Any

import numpy as np

from cdd import dataset, feeds
from tests.ecosystem.okx_stream import Exchange, Message, SlowBook

GOOD = next(Exchange(seed=9).run(1))
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
