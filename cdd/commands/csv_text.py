"""Commands on CSV text and packed rows: csv pack | unpack | head | rows | verify | store | export."""

import argparse
import os
import re
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

import cdd
import cdd.csv
import cdd.packed
from cdd.commands import formats
from cdd.commands.sources import Picked
from cdd.commands.terminal import (
    ArgumentError,
    Commands,
    add_threads,
    argument,
    bytes_text,
    natural,
    shape_argument,
)
from cdd.packed.exporting import text_into, write_all
from cdd.packed.options import CsvOptions


def add(commands: Commands) -> None:
    text = "Packs, shows, stores and writes CSV text; - is standard input or output."
    group = commands.add("csv", _nothing, text)
    parsers = group.add_subparsers(required=True, metavar="WHAT")

    def command(name: str, work: Callable[[argparse.Namespace], int], text: str) -> argparse.ArgumentParser:
        made = parsers.add_parser(name, help=text, description=text)
        made.set_defaults(work=_in_words_of_options(work))
        made.add_argument("file", metavar="FILE")
        add_threads(made, argparse.SUPPRESS)
        return made

    pack = command("pack", _pack, "Packs CSV text.")
    unpack = command("unpack", _unpack, "Writes packed rows as CSV text.")
    head = command("head", _head, "Shows the first rows of CSV text or packed rows.")
    rows = command(
        "rows", _rows, "Writes rows A to B (B not included) of CSV text or packed rows as CSV text."
    )
    verify = command("verify", _verify, "Reads all of CSV text or packed rows and says what is wrong first.")
    store = command("store", _store, "Stores CSV text into a dataset, or into one store (a target of .cdd).")
    export = command("export", _export, "Writes a store, or columns of a dataset, as CSV text.")
    for reads_text in (pack, head, rows, verify, store):
        add_csv_options(reads_text)
    for writes in (pack, unpack, export):
        writes.add_argument("--output", "-o", metavar="OUT", default="-", help="(default: standard output)")
        writes.add_argument("--overwrite", action="store_true", help="replace OUT")
    pack.add_argument("--version", type=int, choices=(1, 2), default=2, help="of the format (default: 2)")
    for packed in (unpack, rows, head, verify):
        packed.add_argument(
            "--packed", action="store_true", help="FILE has packed rows, whatever it begins with"
        )
    head.add_argument("-n", type=natural, default=10, metavar="N", help="rows (default: 10)")
    rows.add_argument("rows", type=_range, metavar="A:B")
    store.add_argument("target", metavar="TARGET")
    store.add_argument("--shape", type=argument(shape_argument), metavar="50,3", help="of a row: one array")
    store.add_argument("--dtype", metavar="NAME", help="(default: float32 with --shape, else float64)")
    store.add_argument("--clock", metavar="COLUMN", help="of times, which orders the rows of a dataset")
    store.add_argument(
        "--type", action="append", default=[], metavar="COLUMN=TYPE", help="as of cdd.csv.read"
    )
    store.add_argument(
        "--null",
        action="append",
        default=[],
        metavar="[COLUMN=]NUMBER",
        help="what stands for empty fields of numbers: of all columns, or of one (again for others)",
    )
    for flag, what in (
        ("--lossy", "round what the dtype does not hold"),
        ("--sort", "sort rows by the clock"),
        ("--any-order", "take rows that are out of order"),
        ("--overwrite", "replace TARGET"),
        ("--resume", "go on after the rows that TARGET has"),
        ("--quiet", "no progress"),
    ):
        store.add_argument(flag, action="store_true", help=what)
    export.add_argument("--columns", metavar="A,B", help="of a dataset (default: all)")
    export.add_argument("--rows", type=_range, default=slice(None), metavar="A:B")
    export.add_argument("--delimiter", default=",", metavar="C")
    export.add_argument("--no-header", action="store_true", help="no line of names")


def add_csv_options(parser: argparse._ActionsContainer) -> None:
    parser.add_argument("--delimiter", default=",", metavar="C", help="one character; tab for a tabulator")
    parser.add_argument("--quote", default='"', metavar="C", help="one character, or none")
    parser.add_argument("--no-header", action="store_true", help="the first row has no names")
    parser.add_argument(
        "--lenient", action="store_true", help="read quotes out of place as the csv module does"
    )
    parser.add_argument("--comment", metavar="C", help="rows that begin with it are passed over")
    parser.add_argument("--skip", type=natural, default=0, metavar="N", help="lines to pass over first")
    parser.add_argument("--ragged", choices=("error", "pad", "skip"), default="error")
    parser.add_argument("--columns", metavar="A,B", help="names or numbers (default: all)")
    parser.add_argument(
        "--encoding", choices=("utf8", "bytes"), default="utf8", help="bytes: text need not be UTF-8"
    )


def _nothing(_: argparse.Namespace) -> int:
    return 2


def _range(text: str) -> slice:
    try:
        begin, colon, end = text.partition(":")
        if not colon:
            return slice(int(begin), int(begin) + 1 or None)
        return slice(int(begin) if begin else None, int(end) if end else None)
    except ValueError:
        raise argparse.ArgumentTypeError(f"rows are A:B, not {text!r}") from None


def _character(text: str | None) -> str | None:
    return None if text in (None, "none") else "\t" if text in ("tab", "\\t") else text


def _names(text: str) -> list[int | str]:
    return [int(name) if name.lstrip("-").isdigit() else name for name in text.split(",")]


def csv_options(options: argparse.Namespace) -> CsvOptions:
    made: CsvOptions = {
        "delimiter": _character(options.delimiter) or ",",
        "quote": _character(options.quote),
        "strict": not options.lenient,
        "comment": options.comment,
        "skip": options.skip,
        "ragged": options.ragged,
        "encoding": options.encoding,
    }
    if options.columns:
        made["columns"] = _names(options.columns)
    return made


# What errors of cdd.csv say, and what an option of the command line says instead.
_WORDS = (
    (r"null=\{'([^']*)': value\}", r"--null \1=NUMBER"),
    (r"null=\{'([^']*)': ", r"--null {'\1': "),
    (r"null=", "--null "),
    (r"types=\{'([^']*)': \"([^\"]*)\"\}", r"--type \1=\2"),
    (r"types=", "--type "),
    (r'order="any"', "--any-order"),
    (r'(dtype|encoding|ragged|version)="?(\w+)"?', r"--\1 \2"),
    (r"\b(sort|lossy|overwrite|resume)=True", r"--\1"),
    (r"header=False", "--no-header"),
    (r"\b(columns|dtype|shape|clock|quote|delimiter|comment)=(None)?", r"--\1"),
)


def _in_words_of_options(work: Callable[[argparse.Namespace], int]) -> Callable[[argparse.Namespace], int]:
    """A command whose errors name options of the command line, not keywords of Python."""

    def worked(options: argparse.Namespace) -> int:
        try:
            return work(options)
        except OSError as error:
            error.strerror = in_words_of_options(error.strerror or "") or None
            raise
        except (cdd.CddError, ValueError, KeyError, TypeError) as error:
            if error.args and isinstance(error.args[0], str):
                error.args = (in_words_of_options(error.args[0]), *error.args[1:])
            raise

    return worked


def in_words_of_options(text: str) -> str:
    for pattern, words in _WORDS:
        text = re.sub(pattern, words, text)
    return text


def _pack(options: argparse.Namespace) -> int:
    given, header = csv_options(options), not options.no_header
    if options.version == 2:
        with formats.target(options.output, options.overwrite, [options.file]) as out:
            cdd.csv.pack(options.file, version=2, header=header, out=out, **given)
        return 0
    packed = cdd.csv.pack(options.file, header=header, **given)
    with formats.target(options.output, options.overwrite, [options.file]) as out:
        write_all(out, packed._buffer)
    return 0


def _open_packed(path: str, header: bool = False) -> cdd.packed.Packed:
    source = sys.stdin.buffer.read() if path == "-" else path
    return cdd.packed.open(source, header=header)


def _is_packed(options: argparse.Namespace) -> bool:
    if options.packed or options.file == "-":
        return bool(options.packed)
    with open(options.file, "rb") as file:  # noqa: PTH123
        return file.read(4) in (b"VSCO", b"OCSV")


def _rows_of(options: argparse.Namespace) -> cdd.packed.Packed:
    header = not options.no_header
    if _is_packed(options):
        return _open_packed(options.file, header)
    return cdd.csv.pack(options.file, version="auto", header=header, **csv_options(options))


def _unpack(options: argparse.Namespace) -> int:
    packed = _open_packed(options.file)
    with _text_target(options) as out:
        cdd.csv.write(packed, out)
    return 0


@contextmanager
def _text_target(options: argparse.Namespace) -> Iterator[Any]:
    """Where text goes: a file that gets its name when it is whole, .gz compressed; or standard output."""
    with (
        formats.target(options.output, options.overwrite, [options.file]) as file,
        text_into(file, options.output) as out,
    ):
        yield out


def _head(options: argparse.Namespace) -> int:
    if not _is_packed(options):
        batches = cdd.csv.batches(
            options.file, "text", rows=max(options.n, 1), header=not options.no_header, **csv_options(options)
        )
        table = next(iter(batches), None)
        if table is not None:
            cdd.csv.write(table[: options.n], sys.stdout.buffer, header=not options.no_header)
            sys.stdout.buffer.flush()
        return 0
    packed = _rows_of(options)
    cdd.csv.write(packed[: options.n], sys.stdout.buffer)
    sys.stdout.buffer.flush()
    return 0


def _rows(options: argparse.Namespace) -> int:
    packed = _rows_of(options)
    cdd.csv.write(packed[options.rows], sys.stdout.buffer)
    sys.stdout.buffer.flush()
    return 0


def _verify(options: argparse.Namespace) -> int:
    if not _is_packed(options):
        rows = sum(
            map(
                len,
                cdd.csv.batches(options.file, "text", header=not options.no_header, **csv_options(options)),
            )
        )
        print(f"{options.file}: {rows:,} rows, all is well")
        return 0
    packed = _open_packed(options.file)
    packed.verify()
    if packed.torn_bytes or not packed.finished:
        print(
            f"{options.file}: {len(packed):,} whole rows, then {packed.torn_bytes:,} torn bytes: it was cut"
        )
        return 1
    print(f"{options.file}: version {packed.version}, {len(packed):,} rows, all is well")
    return 0


def _null(given: list[str]) -> Any:
    """One number for all columns, or {column: number}."""
    made: dict[str, Any] = {}
    for text in given:
        name, _, number = text.rpartition("=")
        try:
            made[name] = int(number) if number.lstrip("+-").isdigit() else float(number)
        except ValueError:
            raise ArgumentError(f"--null is NUMBER or COLUMN=NUMBER, not {text!r}") from None
    if "" in made and len(given) > 1:
        raise ArgumentError("--null is one NUMBER for all columns, or COLUMN=NUMBER for each of some")
    return made.get("", made or None)


def _store(options: argparse.Namespace) -> int:
    types: dict[Any, str] = {}
    for given in options.type:
        name, _, kind = given.partition("=")
        types[name] = kind

    def show(done: int, total: int) -> None:
        if sys.stderr.isatty() and not options.quiet:
            share = f"{100 * done // total} % of {bytes_text(total)}" if total else bytes_text(done)
            print(f"{options.file}: {share}", end="\r", file=sys.stderr, flush=True)

    report = cdd.csv.store(
        options.file,
        options.target,
        types or None,
        shape=options.shape,
        dtype=options.dtype,
        clock=options.clock,
        null=_null(options.null),
        lossy=options.lossy,
        sort=options.sort,
        order="any" if options.any_order else "nondecreasing",
        overwrite=options.overwrite,
        resume=options.resume,
        progress=show,
        header=not options.no_header,
        **csv_options(options),
    )
    print(f"{options.target}: {report}")
    return 0


def _export(options: argparse.Namespace) -> int:
    delimiter, header = _character(options.delimiter) or ",", not options.no_header
    if os.path.isdir(options.file):  # noqa: PTH112
        with _text_target(options) as out:
            for number, part in enumerate(_dataset_parts(options)):
                cdd.csv.write(part, out, header=header and number == 0, delimiter=delimiter)
        return 0
    if options.columns:
        raise ArgumentError("--columns is of a dataset: cdd-read writes some levels and features of a store")
    with cdd.open(options.file) as reader, _text_target(options) as out:
        source = reader if options.rows == slice(None) else reader[options.rows]
        names = Picked(reader, slice(0), None, None).names()
        cdd.csv.write(source, out, header=header, names=names if header else None, delimiter=delimiter)
    return 0


def _dataset_parts(options: argparse.Namespace, rows: int = 100_000) -> Iterator[dict[str, Any]]:
    """Columns of a dataset, some rows at a time, by the names that they had in CSV; a book's cells are
    columns of their own, texts are texts."""
    from cdd import dataset

    with dataset.open(options.file) as opened:
        names = options.columns.split(",") if options.columns else list(opened.columns)
        known = opened.attrs.get("csv_names", {})
        plain = {shown: name for name, shown in known.items() if isinstance(shown, str)}
        columns = [plain.get(name, name) if name not in opened.columns else name for name in names]
        begin, end, _ = options.rows.indices(len(opened))
        for first in range(begin, max(end, begin + 1), rows):
            last = min(first + rows, end)
            yield dict(pair for name in columns for pair in _cells(opened[name], name, known, first, last))


def _cells(column: Any, name: str, known: Any, first: int, last: int) -> Iterator[tuple[str, Any]]:
    """(name in CSV, items) of rows [first, last)."""
    if column.is_text:
        yield known.get(name, name), column.text(first, last)
        return
    values = column[first:last]
    if values.ndim == 1:
        yield known.get(name, name), values
        return
    places = list(np.ndindex(*values.shape[1:]))
    names = known.get(name)
    if not isinstance(names, list) or len(names) != len(places):
        names = [".".join([name, *map(str, place)]) for place in places]
    yield from ((one, values[(slice(None), *place)]) for one, place in zip(names, places, strict=True))
