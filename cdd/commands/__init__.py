"""python -m cdd: looks after files from the command line. Each module here adds a group of commands."""

import argparse
import io
import os
import re
import sys
from collections.abc import Sequence

import cdd
from cdd.commands import (
    appending,
    comparing,
    csv_text,
    dataset,
    feeds,
    looking,
    migrate,
    plot,
    reading,
    rewriting,
)
from cdd.commands.sources import rows_argument
from cdd.commands.terminal import (
    ArgumentError,
    Commands,
    add_threads,
    complain,
    is_of_output,
    open_closed_streams,
    tell_notes,
)

GROUPS = (reading, appending, looking, migrate, comparing, rewriting, dataset, csv_text, feeds, plot)
STATUS = (
    "Exit status: 0 all is well, 1 a file is damaged or something failed, 2 wrong arguments, 130 interrupted."
)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m cdd", description="Looks after cdd files.", epilog=STATUS
    )
    parser.add_argument("--version", action="version", version=f"cdd {cdd.__version__}")
    add_threads(parser, 0)
    commands = Commands(parser)
    for group in GROUPS:
        group.add(commands)
    return parser


def _single(name: str) -> argparse.ArgumentParser:
    """The parser of a command that is a program of its own."""
    parser = argparse.ArgumentParser(prog=name)
    parser.add_argument("--version", action="version", version=f"cdd {cdd.__version__}")
    add_threads(parser, 0)
    return parser


def read() -> int:
    """The program cdd-read."""
    parser = _single("cdd-read")
    reading.add_read(parser)
    parser.set_defaults(work=reading.read_rows)
    return _work(_parsed(parser, sys.argv[1:]))


def append() -> int:
    """The program cdd-append."""
    parser = _single("cdd-append")
    appending.add_append(parser)
    parser.set_defaults(work=appending.append_rows)
    return _work(_parsed(parser, sys.argv[1:]))


def main(arguments: Sequence[str] | None = None) -> int:
    return _work(_parsed(_parser(), sys.argv[1:] if arguments is None else arguments))


def _parsed(parser: argparse.ArgumentParser, arguments: Sequence[str]) -> argparse.Namespace:
    """Rows may stand after options, too: argparse before 3.13 takes them only right after FILE."""
    options, left = parser.parse_known_args(_shielded(arguments))
    if len(left) == 1 and getattr(options, "rows", None) == slice(None) and not left[0].startswith("-"):
        try:
            options.rows = rows_argument(left.pop())
        except ValueError as error:
            parser.error(str(error))
    if left:
        parser.error(f"unrecognized arguments: {' '.join(left)}")
    return options


def _shielded(arguments: Sequence[str]) -> list[str]:
    """Ranges that begin with a minus are no options to argparse where a blank is in them."""
    return [f" {one}" if re.fullmatch(r"-\d+:[-\d:]*|-\d+(,-?\d+)+", one) else one for one in arguments]


def _work(options: argparse.Namespace) -> int:
    open_closed_streams()
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")  # names may be any bytes
    try:
        cdd.set_threads(options.threads)
        status: int = options.work(options)
        print(end="", flush=True)
    except KeyboardInterrupt as ended:
        tell_notes(ended)
        return 130
    except (cdd.CddError, OSError, ValueError, TypeError, IndexError, KeyError, ImportError) as error:
        if not is_of_output(error):
            complain(getattr(options, "file", getattr(error, "filename", None) or "cdd"), error)
        else:
            if not isinstance(error, BrokenPipeError):  # whoever closed the pipe has seen enough
                complain("standard output", error)
            try:
                os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # else Python tries again
            except OSError:  # it is closed
                sys.stdout = open(os.devnull, "w")  # noqa: PTH123, SIM115
        return 2 if isinstance(error, ArgumentError) else 1
    return status
