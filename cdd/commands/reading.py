"""Commands that show rows: read, head, tail, follow. cdd-read is the first of them."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from typing import Any

from cdd.commands import formats
from cdd.commands.formats import FORMS, Form
from cdd.commands.sources import Picked, between, opened, pick_argument, rows_argument
from cdd.commands.terminal import ArgumentError, Commands, Line, argument, natural, seconds
from cdd.packed.exporting import text_into

READ = """Writes rows of a store to standard output or a file: as CSV, JSON lines, npy, Arrow or raw bytes.

FILE is a .cdd store, a column of a dataset (DATASET/column, DATASET/table/column) or an array of tiles."""
EXAMPLES = """examples:
  %(prog)s btc.cdd                          all rows as CSV
  %(prog)s btc.cdd 1000:2000 --levels 0:5   some rows, of each the first five levels
  %(prog)s btc.cdd -10:                     the last ten rows
  %(prog)s btc.cdd ::100 -o some.npy        every hundredth row as a NumPy file
  %(prog)s btc.cdd --as raw | other         the bytes of the rows, one after the other
  %(prog)s day/book --from 2024-03-01T10:00 --to 2024-03-01T10:05
                                            rows of a dataset by its clock

Exit status: 0 all is well, 1 something failed or the reader of the pipe went away, 2 wrong arguments,
130 interrupted."""


def add(commands: Commands) -> None:
    read = commands.add("read", read_rows, "Writes rows as CSV, JSON lines, npy, Arrow or raw bytes.")
    add_read(read)
    head = commands.add("head", _head, "Writes the first rows.")
    tail = commands.add("tail", _tail, "Writes the last rows, with --follow also those that come.")
    follow = commands.add("follow", _follow, "Writes rows as they come, as tail --follow -n 0.")
    for one in (head, tail, follow):
        one.add_argument("file", metavar="FILE")
        _add_form(one)
    for one in (head, tail):
        one.add_argument("-n", type=natural, default=10, metavar="N", help="rows (default: 10)")
    tail.add_argument("--follow", "-f", action="store_true", help="go on with rows as they come")
    for one in (tail, follow):
        one.add_argument(
            "--timeout", type=argument(seconds), metavar="TIME", help="end when no row came for 30s, 5m"
        )
        one.add_argument(
            "--reopen", action="store_true", help="go on with a file that takes the place of FILE"
        )


def add_read(parser: argparse.ArgumentParser) -> None:
    parser.description = READ
    parser.epilog = EXAMPLES
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("file", metavar="FILE")
    parser.add_argument(
        "rows",
        nargs="?",
        type=argument(rows_argument),
        default=slice(None),
        metavar="A:B[:S]",
        help="which rows: from A to B (not included), every S-th; negative numbers count from the end",
    )
    parser.add_argument(
        "--from", dest="first", metavar="TIME", help="rows from this time on, found by bisection"
    )
    parser.add_argument("--to", dest="last", metavar="TIME", help="rows before this time")
    parser.add_argument(
        "--time",
        metavar="TIMES",
        help="the sorted times of the rows: a store or column (default: the dataset's clock)",
    )
    _add_form(parser)


def _add_form(parser: argparse.ArgumentParser) -> None:
    pick = argument(pick_argument)
    parser.add_argument("--levels", type=pick, metavar="L", help="of books: 3, 0:25 or 0,5,7 (default: all)")
    parser.add_argument("--features", type=pick, metavar="F", help="of each level, in the same way")
    form = parser.add_mutually_exclusive_group()
    form.add_argument(
        "--as",
        dest="form",
        choices=FORMS,
        help="(default: by the name of OUT, else csv; arrow needs pyarrow)",
    )
    form.add_argument(
        "--json", dest="form", action="store_const", const="jsonl", help="the same as --as jsonl"
    )
    parser.add_argument("--output", "-o", default="-", metavar="OUT", help="(default: standard output)")
    parser.add_argument("--overwrite", action="store_true", help="replace OUT when it exists")
    parser.add_argument("--row", action="store_true", help="the number of each row, too")
    parser.add_argument("--columns", metavar="A,B", help="names of the items (default: l0_f0, l0_f1, ...)")
    parser.add_argument("--delimiter", default=",", metavar="C", help="of CSV; tab for a tabulator")
    parser.add_argument("--no-header", action="store_true", help="CSV without a line of names")
    parser.add_argument("--quiet", "-q", action="store_true", help="no progress")


def read_rows(options: argparse.Namespace) -> int:
    """cdd-read."""
    with opened(options.file) as source:
        rows = options.rows
        if options.first is not None or options.last is not None:
            if rows != slice(None):
                raise ArgumentError("rows are given by numbers or by --from and --to, not by both")
            rows = _by_time(source, options)
        elif options.time is not None:
            raise ArgumentError("--time says where times are: --from and --to say which rows")
        _write(source, rows, options)
    return 0


def _dataset_of(source: Any) -> Any:
    """The dataset that a column is of, None for other sources."""
    home = getattr(source, "_home", None)
    return None if home is None else home.dataset


def _by_time(source: Any, options: argparse.Namespace) -> slice:
    if options.time is not None:
        with opened(options.time) as clock:
            return between(source, clock, options.first, options.last)
    table = _dataset_of(source)
    if table is None:
        raise ArgumentError("--time TIMES says where the times of the rows are")
    table = table[source._table] if source._table else table
    if table.clock is None:
        raise ArgumentError("this table of the dataset has no clock: --time TIMES says where times are")
    return between(source, table[table.clock], options.first, options.last)


def _head(options: argparse.Namespace) -> int:
    with opened(options.file) as source:
        _write(source, slice(0, options.n), options)
    return 0


def _tail(options: argparse.Namespace) -> int:
    with opened(options.file) as source:
        rows = slice(max(0, len(source) - options.n), len(source))
        if not options.follow:
            _write(source, rows, options)
            return 0
        return _go_on(source, rows.start, options)


def _follow(options: argparse.Namespace) -> int:
    with opened(options.file) as source:
        return _go_on(source, len(source), options)


def _write(source: Any, rows: int | slice, options: argparse.Namespace) -> None:
    kind = formats.form_named(options.form, options.output)
    formats.check_terminal(kind, options.output)
    picked = Picked(source, rows, options.levels, options.features)
    count = len(picked.rows)
    line = Line(options.file, options.quiet or (options.output == "-" and sys.stdout.isatty()))
    where = formats.target(options.output, options.overwrite, _reads(options))
    with where as file, text_into(file, options.output) as out:
        form = _form(kind, out, picked, options)
        form.begin(count)
        done = 0
        for first, block in picked.blocks():
            form.write(first, picked.rows.step, block)
            done += len(block)
            line.show(done, count, "rows")
        form.end()
    line.end()


def _reads(options: argparse.Namespace) -> list[str | None]:
    return [options.file, getattr(options, "time", None)]


def _form(kind: str, out: Any, picked: Picked, options: argparse.Namespace) -> Form:
    delimiter = "\t" if options.delimiter in ("tab", "\\t") else options.delimiter
    if len(delimiter) != 1 or not delimiter.isascii():
        raise ArgumentError(f"the delimiter is one ASCII character, not {delimiter!r}")
    return Form(
        kind,
        out,
        picked.empty(),
        options.columns.split(",") if options.columns else picked.names(),
        texts=picked.source.categories if getattr(picked.source, "is_text", False) else None,
        delimiter=delimiter,
        header=not options.no_header,
        numbers=options.row,
    )


def _go_on(source: Any, start: int, options: argparse.Namespace) -> int:
    """Rows from `start` on, and those that come."""
    kind = formats.form_named(options.form, options.output)
    if kind == "npy":
        raise ArgumentError("npy says first how many rows there are: csv, jsonl, arrow and raw go on")
    if options.row and options.reopen:
        raise ArgumentError(
            "a file that takes the place of another has numbers of its own: not --row --reopen"
        )
    formats.check_terminal(kind, options.output)
    where = formats.target(options.output, options.overwrite, _reads(options), at_once=True)
    with where as file, text_into(file, options.output) as out:
        form: Form | None = None
        number = start
        for rows in _followed(source, start, options):
            if form is None:
                form = _form(kind, out, Picked(source, slice(0), options.levels, options.features), options)
                form.begin(0)
            form.write(number, 1, _part(rows, options))
            out.flush()
            number += len(rows)
        if form is not None:
            form.end()
    return 0


def _followed(source: Any, start: int, options: argparse.Namespace) -> Iterator[Any]:
    if hasattr(source, "chunk_infos"):
        return iter(source.follow(start, options.timeout, options.reopen))
    if options.reopen:
        raise ArgumentError("--reopen is for files: nothing takes the place of a dataset or of tiles")
    table = _dataset_of(source)
    if table is None:
        return iter(source.follow(start, timeout=options.timeout))
    table = table[source._table] if source._table else table
    steps = table.follow([source._key], start=start, timeout=options.timeout)
    return (rows[source._key] for rows in steps)


def _part(rows: Any, options: argparse.Namespace) -> Any:
    """Levels and features of rows that are in memory."""
    if options.features is not None:
        rows = rows[..., options.features]
    if options.levels is not None:
        rows = rows[:, options.levels]
    return rows
