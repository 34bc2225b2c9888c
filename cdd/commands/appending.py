"""The command that adds rows to a store: append, which is also the program cdd-append."""

from __future__ import annotations

import argparse
import json
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

import cdd
from cdd.arguments import dtype_option
from cdd.commands import csv_text, inputs
from cdd.commands.dataset import is_dataset
from cdd.commands.inputs import KINDS, Blocks, Layout
from cdd.commands.pipes import Bytes, Pipe
from cdd.commands.terminal import ArgumentError, Commands, Line, argument, seconds, shape_argument
from cdd.commands.text_rows import Parsing

APPEND = """Adds rows to a store, which is created where there is none.

IN is a file of CSV text, JSON lines, npy, npz, Arrow, raw bytes or another .cdd store, told by its name or by
--as; - is standard input, CSV unless --as says otherwise. Text may be compressed (.gz, .zst).

A file is added whole or not at all. What came through a pipe before something was wrong with it stays.
Text that is no number is an error that names row, column and text, and so is a number that the dtype of the
store does not hold."""
EXAMPLES = """examples:
  %(prog)s btc.cdd day1.npy day2.npy
  %(prog)s btc.cdd book.csv --shape 50,3 --dtype float32
  %(prog)s ticks.cdd ticks.csv --columns bid,ask
  collector | %(prog)s btc.cdd - --as raw --dtype float32 --shape 50,3 --flush-every 1s
  cdd-read old.cdd --as raw | %(prog)s new.cdd --as raw --dtype float32 --shape 50,3 --profile dense

Exit status: 0 all rows were added, 1 something failed, 2 wrong arguments, 130 interrupted."""
_PIPE_SECONDS = 0.2  # after so long the rows of a pipe are taken, however few


def add(commands: Commands) -> None:
    add_append(
        commands.add("append", append_rows, "Adds rows of npy, csv, jsonl, arrow, raw bytes or stores.")
    )


def add_append(parser: argparse.ArgumentParser) -> None:
    parser.description = APPEND
    parser.epilog = EXAMPLES
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("file", metavar="FILE", help="the store")
    parser.add_argument("inputs", nargs="*", default=["-"], metavar="IN", help="(default: -, standard input)")
    parser.add_argument(
        "--as", dest="form", choices=KINDS, help="what the inputs are (default: by their names)"
    )
    store = parser.add_argument_group("of a new store")
    store.add_argument(
        "--dtype",
        type=argument(_dtype),
        metavar="NAME",
        help="as NumPy calls it (default: the input's, of text float64)",
    )
    store.add_argument(
        "--shape",
        type=argument(shape_argument),
        metavar="50,3",
        help="of a row; none for rows of one item (default: the input's, of text its columns)",
    )
    store.add_argument("--create-only", action="store_true", help="FILE must not exist")
    store.add_argument("--attrs", type=argument(_attrs), metavar="JSON", help="attributes, as a JSON object")
    how = parser.add_argument_group("how rows are stored")
    how.add_argument("--profile", choices=("fast", "dense"), help="fast to read, or small (default: fast)")
    how.add_argument("--codec", choices=cdd.CODECS, metavar="NAME", help="one of cdd.CODECS (default: auto)")
    how.add_argument("--zstd-level", type=int, metavar="N", help="1 to 22 (default: 3)")
    how.add_argument("--chunk-bytes", type=int, metavar="N", help="stored bytes of a chunk (default: 4096)")
    how.add_argument("--chunk-rows", type=int, metavar="N", help="instead: rows of a chunk")
    how.add_argument("--durability", choices=("batch", "none", "flush", "always"), help="(default: batch)")
    how.add_argument(
        "--flush-every",
        type=argument(seconds),
        metavar="TIME",
        help="of a pipe: show rows to readers each 500ms, 1s",
    )
    text = parser.add_argument_group("of text")
    csv_text.add_csv_options(text)
    text.add_argument(
        "--null", type=float, metavar="NUMBER", help="what empty fields are (default: an error)"
    )
    text.add_argument("--lossy", action="store_true", help="round numbers that the dtype does not hold")
    parser.add_argument("--array", metavar="NAME", help="of an npz with several arrays")
    parser.add_argument("--json", action="store_true", help="say what was done as a JSON object")
    parser.add_argument("--quiet", "-q", action="store_true", help="say nothing, show no progress")


def _dtype(text: str) -> np.dtype[Any]:
    try:
        return dtype_option(text)
    except (TypeError, ImportError) as error:
        raise ValueError(str(error)) from None


def _attrs(text: str) -> dict[str, Any]:
    try:
        found = json.loads(text)
    except ValueError as error:
        raise ValueError(f"attributes are a JSON object, not {text!r}: {error}") from None
    if not isinstance(found, dict):
        raise ValueError(f"attributes are a JSON object, not {text!r}")
    return found


def append_rows(options: argparse.Namespace) -> int:
    """cdd-append."""
    if is_dataset(options.file) or any(is_dataset(str(folder)) for folder in Path(options.file).parents):
        raise ArgumentError(
            f"{options.file} is of a dataset, whose columns grow together: python -m cdd csv store, or "
            "cdd.dataset.open(path, 'a')"
        )
    if options.inputs.count("-") > 1:
        raise ArgumentError("standard input is read once")
    work = _Appending(options)
    try:
        for name in options.inputs:
            work.add(name)
    except BaseException as error:
        work.close()
        if work.added and not options.quiet:
            error.add_note(f"{options.file}: {work.added:,} rows were added before that")
        raise
    work.close()
    rows, added = work.rows, work.added
    try:
        if options.json:
            print(json.dumps({"file": options.file, "appended": added, "rows": rows}), flush=True)
        elif not options.quiet and not Path(options.file).exists():
            print(f"{options.file}: no rows came, so there is no store", flush=True)
        elif not options.quiet:
            print(f"{options.file}: {added:,} rows added, {rows:,} in all", flush=True)
    except OSError as error:  # the rows are stored, whoever does not hear of it
        error.add_note(f"{options.file}: {added:,} rows were added, {rows:,} in all")
        raise
    return 0


class _Appending:
    """A store that is opened when the first rows are there, and what is added to it."""

    added = 0
    rows = 0

    def __init__(self, options: argparse.Namespace) -> None:
        self._options = options
        self._is_new = not Path(options.file).exists() or not Path(options.file).stat().st_size
        if options.create_only and not self._is_new:
            raise ValueError(f"{options.file} is there already: --create-only was given")
        self._writer: cdd.Writer | None = None
        self._layout = Layout(options.dtype, options.shape)
        if not self._is_new:
            self._layout = self._of_store()
        self._parsing = Parsing(
            csv=csv_text.csv_options(options),
            header=not options.no_header,
            null=options.null,
            lossy=options.lossy,
            array=options.array,
        )
        self._flushed = time.monotonic()

    def _of_store(self) -> Layout:
        """What the rows of the store are. ArgumentError where --dtype or --shape say something else."""
        with cdd.open(self._options.file) as reader:
            try:
                found = Layout(reader.dtype, reader.shape[1:])
            except ValueError:  # nothing was appended yet
                return self._layout
        for name, asked, there in zip(("--dtype", "--shape"), self._layout, found, strict=True):
            if asked is not None and asked != there:
                raise ArgumentError(
                    f"{self._options.file} has rows of {found[1]} {found[0]}: {name} {asked} is none"
                )
        return found

    def add(self, name: str) -> None:
        """All rows of one input."""
        kind = inputs.kind_named(self._options.form, name)
        if name == "-":
            self._add_pipe(kind)
            return
        if kind in (
            "csv",
            "jsonl",
            "arrow",
            "raw",
            "npy",
        ):  # read twice: an error in it comes before the first row
            for block in self._blocks(kind, name, inputs.bytes_of(name)):
                self._check(name, block)
        line = Line(name, self._options.quiet)
        done = 0
        for block in self._blocks(kind, name, inputs.bytes_of(name)):
            self._check(name, block)
            self._take(block)
            done += 0 if block is None else len(block)
            line.show(done, 0, "rows")
        line.end()

    def _add_pipe(self, kind: str) -> None:
        every = self._options.flush_every
        wait = _PIPE_SECONDS if every is None else min(every, _PIPE_SECONDS)
        pipe = Pipe(wait, lambda: self._take(None))
        try:
            for block in self._blocks(kind, "-", pipe):
                self._take(block)
                if block is None and pipe.is_interrupted:
                    raise KeyboardInterrupt
        finally:
            pipe.close()

    def _blocks(self, kind: str, name: str, source: Bytes) -> Blocks:
        try:
            yield from inputs.blocks(kind, name, source, self._layout, self._parsing)
        finally:
            source.close()

    def _check(self, name: str, block: Any) -> None:
        """That the store takes such rows; they are its layout where it has none."""
        if block is None:
            return
        dtype, shape = self._layout
        native = block.dtype.newbyteorder("=") if block.dtype.kind != "V" else block.dtype
        if dtype is not None and native != dtype:
            raise TypeError(f"{name} has rows of {block.dtype}, {self._options.file} holds {dtype}")
        if shape is not None and block.shape[1:] != shape:
            raise ValueError(f"{name} has rows of shape {block.shape[1:]}, {self._options.file} {shape}")
        self._layout = Layout(native, block.shape[1:])

    def _take(self, block: Any) -> None:
        if block is not None:
            self._check("-", block)
        if block is not None and len(block):
            writer = self._opened()
            writer.append(block)
            self.added += len(block)
            self.rows = len(writer)
        every = self._options.flush_every
        if every is not None and self._writer is not None and time.monotonic() - self._flushed >= every:
            self._writer.flush()
            self._flushed = time.monotonic()

    def _opened(self) -> cdd.Writer:
        if self._writer is None:
            names = ("profile", "codec", "zstd_level", "chunk_bytes", "chunk_rows", "durability")
            given = {name: getattr(self._options, name) for name in names}
            given = {name: value for name, value in given.items() if value is not None}
            if self._is_new:  # what no store holds is refused before there is a file
                given |= {"dtype": self._layout.dtype, "row_shape": self._layout.row_shape}
            if self._is_new and self._options.attrs is not None:
                given["attrs"] = self._options.attrs
            mode: Any = "x" if self._options.create_only else "a"
            self._writer = cdd.open(self._options.file, mode, **given)
        return self._writer

    def close(self) -> None:
        if self._writer is None and sys.exc_info()[0] is None:
            if self._is_new and self._layout.dtype is not None and self._layout.row_shape is not None:
                self._opened()
            elif not self._is_new:
                with cdd.open(self._options.file) as reader:
                    self.rows = len(reader)
        if self._writer is not None:
            self._writer.close()
            self.rows = len(self._writer)
