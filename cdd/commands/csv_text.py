"""Commands on CSV text and packed rows: csv pack | unpack | head | rows | verify | store | export."""

import argparse
import os
import sys
from collections.abc import Callable, Iterator
from typing import Any

import cdd
import cdd.csv
import cdd.packed
from cdd.commands.terminal import Commands, add_threads, bytes_text, natural
from cdd.packed.exporting import write_all
from cdd.packed.options import CsvOptions


def add(commands: Commands) -> None:
    text = "Packs, shows, stores and writes CSV text; - is standard input or output."
    group = commands.add("csv", _nothing, text)
    parsers = group.add_subparsers(required=True, metavar="WHAT")

    def command(name: str, work: Callable[[argparse.Namespace], int], text: str) -> argparse.ArgumentParser:
        made = parsers.add_parser(name, help=text, description=text)
        made.set_defaults(work=work)
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
    pack.add_argument("--version", type=int, choices=(1, 2), default=2, help="of the format (default: 2)")
    for packed in (unpack, rows, head, verify):
        packed.add_argument(
            "--packed", action="store_true", help="FILE has packed rows, whatever it begins with"
        )
    head.add_argument("-n", type=natural, default=10, metavar="N", help="rows (default: 10)")
    rows.add_argument("rows", type=_range, metavar="A:B")
    store.add_argument("target", metavar="TARGET")
    store.add_argument("--shape", type=_shape, metavar="50,3", help="of a row: all columns in one array")
    store.add_argument("--dtype", metavar="NAME", help="(default: float32 with --shape, else float64)")
    store.add_argument("--clock", metavar="COLUMN", help="of times, which orders the rows of a dataset")
    store.add_argument(
        "--type", action="append", default=[], metavar="COLUMN=TYPE", help="as of cdd.csv.read"
    )
    store.add_argument("--null", metavar="NUMBER", help="what stands for empty fields of numbers")
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


def _shape(text: str) -> tuple[int, ...]:
    return tuple(int(size) for size in text.split(","))


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
    }
    if options.columns:
        made["columns"] = _names(options.columns)
    return made


def _output(path: str) -> Any:
    return sys.stdout.buffer if path == "-" else path


def _pack(options: argparse.Namespace) -> int:
    given, header = csv_options(options), not options.no_header
    if options.version == 2:
        cdd.csv.pack(options.file, version=2, header=header, out=_output(options.output), **given)
        return 0
    packed = cdd.csv.pack(options.file, header=header, **given)
    if options.output == "-":
        write_all(sys.stdout.buffer, packed._buffer)
        sys.stdout.buffer.flush()
    else:
        cdd._cdd.publish(os.fspath(options.output), packed._buffer, True)
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
    cdd.csv.write(packed, _output(options.output))
    return 0


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
        null=None if options.null is None else float(options.null),
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
        source: Any = _dataset_parts(options)
    else:
        with cdd.open(options.file) as reader:
            source = reader if options.rows == slice(None) else reader[options.rows]
            cdd.csv.write(source, _output(options.output), header=header, delimiter=delimiter)
        return 0
    target = sys.stdout.buffer if options.output == "-" else open(options.output, "wb")  # noqa: PTH123, SIM115
    try:
        for number, part in enumerate(source):
            cdd.csv.write(part, target, header=header and number == 0, delimiter=delimiter)
    finally:
        target.flush() if options.output == "-" else target.close()
    return 0


def _dataset_parts(options: argparse.Namespace, rows: int = 100_000) -> Iterator[dict[str, Any]]:
    """Columns of a dataset, some rows at a time; a book's cells are columns of their own."""
    from cdd import dataset

    with dataset.open(options.file) as opened:
        names = options.columns.split(",") if options.columns else list(opened.columns)
        begin, end, _ = options.rows.indices(len(opened))
        for first in range(begin, max(end, begin + 1), rows):
            last = min(first + rows, end)
            yield dict(_flat(names, opened, first, last))


def _flat(names: list[str], opened: Any, first: int, last: int) -> Iterator[tuple[str, Any]]:
    for name in names:
        values = opened[name][first:last]
        if getattr(values, "ndim", 1) <= 1:
            yield name, values
        else:
            flat = values.reshape(len(values), -1)
            yield from ((f"{name}_{k}", flat[:, k]) for k in range(flat.shape[1]))
