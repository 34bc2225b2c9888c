"""Messages of OKX's order book channels, as they come over the websocket or from a file, into updates.

Nothing is known of a book here, and nothing is checked of its levels: Book does that.
"""

import json
from collections.abc import Sequence
from typing import Any, NamedTuple

from cdd.arguments import shown
from cdd.feeds.rejected import RejectedError

Level = Sequence[Any]  # price, size, (anything), orders: texts or numbers; size 0 takes the price out


class Update(NamedTuple):
    """What one message says of one book.

    kind      "snapshot": the book as it is, changes follow; "update": changes of the book before; "whole":
              the book as it is, each message is one
    time      of the exchange, ns since 1970
    bids      levels as [price, size, anything, orders], of texts or numbers; a size of 0 takes a price out.
              Those of a book without the feature "orders" may be [price, size]
    seq, prev the number of this message and of the one it follows; None where there are none
    checksum  of the 25 best levels, None where there is none
    depth     levels a side that the channel has at most, 0 for any number: what changes push beyond it is
              taken out
    """

    symbol: str
    channel: str
    kind: str
    time: int
    bids: Sequence[Level]
    asks: Sequence[Level]
    seq: int | None = None
    prev: int | None = None
    checksum: int | None = None
    depth: int = 0


CHANNELS = {"books": 400, "books-l2-tbt": 400, "books50-l2-tbt": 50, "books5": 5, "bbo-tbt": 1}
"""The channels that are read, each with the levels a side it has."""

WITH_UPDATES = ("books", "books-l2-tbt", "books50-l2-tbt")
"""Those that send changes; the others send whole books."""


def okx(message: str | bytes | dict[str, Any]) -> list[Update]:
    """The updates of one message of OKX; none of those that are not about books, such as the answer to a
    subscription, or "pong".

    Raises RejectedError for what is not JSON, for an event "error", for channels that are not known, and for
    missing fields.
    """
    read: Any = message
    if not isinstance(message, dict):
        if message in ("pong", b"pong"):
            return []
        if not isinstance(message, str | bytes | bytearray):
            raise RejectedError("not JSON", f"text, bytes or a dict is expected, not {shown(message)}")
        try:
            read = json.loads(message)
        except (TypeError, ValueError, RecursionError) as error:
            raise RejectedError("not JSON", str(error)) from None
    try:
        if "event" in read:
            if read["event"] == "error":
                raise RejectedError("error", f"{shown(read.get('code'))} {shown(read.get('msg'))}")
            return []
        arg = read["arg"]
        channel = arg["channel"]
        depth = CHANNELS.get(channel)
        if depth is None:
            raise RejectedError("unknown channel", f"{str(channel)[:40]!r}")
        kind = "whole"
        if channel in WITH_UPDATES:
            kind = read["action"]
            if kind not in ("snapshot", "update"):
                raise RejectedError("not a book", f"action {str(kind)[:40]!r}")
        symbol = arg["instId"]
        return [
            Update(
                symbol,
                channel,
                kind,
                int(data["ts"]) * 1_000_000,
                data["bids"],
                data["asks"],
                data.get("seqId"),
                data.get("prevSeqId"),
                data.get("checksum") or None,  # 0 is sent where there is none
                depth,
            )
            for data in read["data"]
        ]
    except RejectedError:
        raise
    except (KeyError, TypeError, AttributeError, ValueError, OverflowError) as error:
        raise RejectedError("not a book", f"{type(error).__name__} {error}") from None
