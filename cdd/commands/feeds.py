"""The command that keeps books as exchanges send them: record."""

from __future__ import annotations

import argparse
import logging
import os
import signal
import sys
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from cdd.commands.terminal import Commands

if TYPE_CHECKING:
    from cdd import feeds

_LOGIN = ("OKX_API_KEY", "OKX_API_SECRET", "OKX_API_PASSPHRASE")


def add(commands: Commands) -> None:
    text = "Keeps order books of OKX, each in a dataset FOLDER/SYMBOL, until it is interrupted."
    record = commands.add("record", _record, text)
    record.epilog = (
        f"Channels for VIP accounts need a login: {', '.join(_LOGIN)} of the environment. "
        "Exit status 0 also when it was interrupted or terminated: what came until then is kept. 1 where "
        "there was no connection, or a symbol was refused."
    )
    record.add_argument("file", metavar="FOLDER")
    record.add_argument("symbols", nargs="+", metavar="SYMBOL", help="BTC-USDT, ETH-USDT-SWAP, ...")
    text = "books5, bbo-tbt, ... (default: books)"
    record.add_argument("--channel", type=_channel, default="books", help=text)
    record.add_argument("--levels", type=int, default=25, metavar="N", help="a side (default: 25)")
    text = "at most one row in each: 100ms, 1s (default: all)"
    record.add_argument("--every", type=_span, metavar="TIME", help=text)
    record.add_argument("--roll", default="1D", metavar="TIME", help="after which files end (default: 1D)")
    text = "seconds of rows that a kill may cost (default: 1)"
    record.add_argument("--flush", type=float, default=1.0, metavar="S", help=text)
    record.add_argument("--seconds", type=float, metavar="S", help="stop after so long")
    record.add_argument("--url", metavar="URL", help="of the websocket (default: OKX's public one)")
    record.add_argument("--quiet", action="store_true", help="say nothing but errors")


def _channel(text: str) -> str:
    from cdd.feeds import CHANNELS

    if text not in CHANNELS:
        raise argparse.ArgumentTypeError(f"channel is one of {', '.join(CHANNELS)}, not {text!r}")
    return text


def _span(text: str) -> str:
    from cdd.feeds.spans import nanoseconds

    try:
        nanoseconds("it", text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None
    return text


def _record(options: argparse.Namespace) -> int:
    import asyncio  # both take longer to import than most commands run

    from cdd import feeds

    level = logging.ERROR if options.quiet else logging.INFO
    logging.basicConfig(stream=sys.stderr, level=logging.WARNING, format="%(asctime)s %(message)s")
    logging.getLogger("cdd.feeds").setLevel(level)
    values = [os.environ.get(name) for name in _LOGIN]
    given: dict[str, Any] = {
        "channel": options.channel,
        "levels": options.levels,
        "every": options.every,
        "roll": options.roll,
        "flush_s": options.flush,
        "memory_s": max(60.0, options.flush),
        "seconds": options.seconds,
        **({} if options.url is None else {"url": options.url}),
    }
    if "tbt" in options.channel and options.channel != "bbo-tbt" and any(values):
        given["login"] = feeds.Login(*[value or "" for value in values])
    report = asyncio.run(_until_told(options.file, options.symbols, given))
    if not options.quiet:
        print(report)
    if not report.connections:
        print(f"nothing was kept: {options.url or 'the exchange'} was never reached", file=sys.stderr)
    return 1 if report.refused or not report.connections else 0


async def _until_told(folder: str, symbols: list[str], given: dict[str, Any]) -> feeds.Report:
    import asyncio

    from cdd import feeds

    stop = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        with suppress(NotImplementedError, RuntimeError):  # Windows has no such handlers: KeyboardInterrupt
            asyncio.get_running_loop().add_signal_handler(number, stop.set)
    return await feeds.record(folder, symbols, stop=stop, **given)
