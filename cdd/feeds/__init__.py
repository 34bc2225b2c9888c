"""Order books as exchanges send them, into datasets.

    with cdd.feeds.Sink("btc", symbol="BTC-USDT") as sink:
        for message in messages:                # of OKX: books, books5, bbo-tbt, ...
            sink.put(message)
    ds = cdd.dataset.open("btc")                # columns time, received, book
    cuts = cdd.feeds.sessions(ds)               # rows before which some are missing

okx       the updates of one message of OKX
Book      a book that is kept by updates, and its rows (50, 3)
Sink      a dataset that grows by what a feed sends
sessions  the rows where a gap ends
record    subscribes to books over a websocket and keeps them; python -m cdd record does it from a shell
REASONS   why messages are rejected, each with what it means
"""

import importlib
from typing import TYPE_CHECKING, Any

from cdd.feeds.book import FEATURES, Applied, Book
from cdd.feeds.okx import CHANNELS, Update, okx
from cdd.feeds.rejected import REASONS, RejectedError
from cdd.feeds.sink import Sink, sessions

if TYPE_CHECKING:
    from cdd.feeds.recording import Login, Report, record


def __getattr__(name: str) -> Any:
    """record and what belongs to it need websockets, which is imported when they are asked for."""
    if name in ("Login", "Report", "record"):
        return getattr(importlib.import_module("cdd.feeds.recording"), name)
    raise AttributeError(f"module 'cdd.feeds' has no attribute {name!r}")


__all__ = [
    "CHANNELS",
    "FEATURES",
    "REASONS",
    "Applied",
    "Book",
    "Login",
    "RejectedError",
    "Report",
    "Sink",
    "Update",
    "okx",
    "record",
    "sessions",
]
