"""The command that makes stores and datasets of other formats: migrate."""

import argparse
import errno
import json
import sys
import time
from dataclasses import asdict
from typing import Any

from cdd.commands.terminal import (
    ArgumentError,
    Commands,
    argument,
    bytes_text,
    complain,
    natural,
    shape_argument,
)

_FULL = 3  # the exit status of a full disk


def add(commands: Commands) -> None:
    command = commands.add(
        "migrate",
        _migrate,
        "Makes stores, or a dataset, of zarr, npy, npz, HDF5, blosc2, Parquet, Feather, CSV and raw files, "
        "and compares all with the source, bit for bit. Started again after a kill it goes on. Exit status "
        "3: the disk is full, or --min-free is reached.",
    )
    command.add_argument(
        "source", metavar="SOURCE", help="a file, FILE::NAME, a zarr array or group, a folder"
    )
    command.add_argument("target", metavar="TARGET", help="NAME.cdd for one array, else a folder")
    command.add_argument("--into", choices=("stores", "dataset"), default="stores", help="(default: stores)")
    command.add_argument(
        "--path", metavar="NAME", help="which array, or columns a,b as one; * are all columns"
    )
    command.add_argument("--glob", metavar="PATTERN", help="which files of a folder, as '**/*.zarr'")
    command.add_argument(
        "--like", default="auto", metavar="FORMAT", help="the format, where no name tells it"
    )
    command.add_argument("--dtype", metavar="NAME", help="of raw files")
    command.add_argument("--shape", type=argument(shape_argument), metavar="50,3", help="of a raw row")
    command.add_argument(
        "--join",
        type=argument(_join),
        action="append",
        metavar="book=50,3",
        help="columns book.0.0 and so on of a table are one",
    )
    command.add_argument(
        "--times",
        type=argument(_pair),
        action="append",
        metavar="time=ns",
        help="int64 columns of that name are times since 1970",
    )
    command.add_argument("--clock", metavar="COLUMN", help="of times, which orders the rows of a dataset")
    command.add_argument("--missing", choices=("refuse", "fill"), default="refuse", help="(default: refuse)")
    command.add_argument(
        "--slab-bytes", type=natural, default=64 << 20, metavar="N", help="(default: 64 MiB)"
    )
    command.add_argument("--workers", type=natural, default=1, metavar="N", help="processes (default: 1)")
    command.add_argument("--scheduler", metavar="HOST:PORT", help="of dask: its workers do it")
    command.add_argument("--no-verify", action="store_true", help="do not compare with the source")
    command.add_argument("--delete-source", action="store_true", help="remove what is verified")
    command.add_argument("--min-free", default="10%", metavar="N", help="bytes or share (default: 10%%)")
    command.add_argument("--profile", choices=("fast", "dense"), help="of stores (default: fast)")
    command.add_argument("--dry-run", action="store_true", help="say what there is to do")
    command.add_argument("--json", action="store_true", help="print the report as JSON")


def _migrate(options: argparse.Namespace) -> int:
    from cdd.migrate import migrate

    if options.into == "dataset" and options.profile is not None:
        raise ArgumentError("--profile is of stores, not of --into dataset")
    if options.into != "dataset" and options.clock is not None:
        raise ArgumentError("--clock is of --into dataset")
    chosen = {"profile": options.profile, "clock": options.clock}
    bar = Bar() if sys.stderr.isatty() and not options.json else None
    try:
        report = migrate(
            options.source,
            options.target,
            into=options.into,
            like=options.like,
            path=options.path,
            glob=options.glob,
            dtype=options.dtype,
            row_shape=options.shape,
            join=dict(options.join) if options.join else None,
            times=dict(options.times) if options.times else None,
            missing=options.missing,
            slab_bytes=options.slab_bytes,
            verify=not options.no_verify,
            workers=options.workers,
            client=_client(options.scheduler),
            delete_source=options.delete_source,
            min_free=options.min_free if options.min_free.endswith("%") else int(options.min_free),
            dry_run=options.dry_run,
            progress=bar,
            **{name: value for name, value in chosen.items() if value is not None},
        )
    except OSError as error:
        complain(str(error.filename or options.source), error)
        return _FULL if error.errno == errno.ENOSPC else 1
    finally:
        if bar is not None:
            bar.end()
    print(json.dumps(asdict(report)) if options.json else report)
    return 1 if report.failed else 0


def _pair(text: str) -> tuple[str, str]:
    """NAME=VALUE."""
    name, _, value = text.rpartition("=")
    if not name or not value:
        raise ValueError(f"NAME=VALUE is wanted, not {text}")
    return name, value


def _join(text: str) -> tuple[str, tuple[int, ...]]:
    name, shape = _pair(text)
    return name, shape_argument(shape)


def _client(scheduler: str | None) -> Any:
    if scheduler is None:
        return None
    from importlib import import_module

    return import_module("distributed").Client(scheduler)


class Bar:
    """A line of progress on standard error: done, share, speed, time left."""

    def __init__(self) -> None:
        self._start = self._last = time.monotonic()
        self._first: int | None = None  # bytes that were done before

    def __call__(self, done: int, total: int) -> None:
        now = time.monotonic()
        if self._first is None:
            self._first = done
        if now - self._last < 0.2 and done < total:
            return
        self._last = now
        speed = (done - self._first) / max(now - self._start, 1e-9)
        left = (total - done) / speed if speed else 0.0
        filled = 24 * done // max(total, 1)
        text = (
            f"\r[{'=' * filled}{' ' * (24 - filled)}] {bytes_text(done)} of {bytes_text(total)}, "
            f"{bytes_text(speed)}/s, {left:.0f} s left\x1b[K"
        )
        print(text, end="", file=sys.stderr, flush=True)

    def end(self) -> None:
        print(file=sys.stderr)
