"""What commands share: arguments, texts, and errors of one file that let the next be tried."""

import argparse
import errno
import io
import os
import re
import sys
import time
from collections.abc import Callable
from typing import Any

import cdd
from cdd.store.damage import repair_hint

Command = Callable[[argparse.Namespace], int]  # returns the exit status
Look = Callable[[str, argparse.Namespace], bool]  # at one file: whether all is well with it


class ArgumentError(ValueError):
    """Arguments that do not go together: exit status 2."""


class Commands:
    """The commands of `python -m cdd`, to which each group adds its own."""

    def __init__(self, parser: argparse.ArgumentParser) -> None:
        self._parsers = parser.add_subparsers(required=True, metavar="COMMAND")

    def add(self, name: str, work: Command, text: str) -> argparse.ArgumentParser:
        """A command that `work` does; the caller adds its arguments to what is returned."""
        added = self._parsers.add_parser(name, help=text, description=text)
        added.set_defaults(work=work)
        add_threads(added, argparse.SUPPRESS)  # what stands before the command stays
        return added


def add_threads(parser: argparse.ArgumentParser, default: int | str) -> None:
    text = "cores to use (default: all)"
    parser.add_argument("--threads", type=natural, default=default, metavar="N", help=text)


def natural(text: str) -> int:
    if not re.fullmatch(r"[+]?\d+", text.strip()):
        raise argparse.ArgumentTypeError(f"a number is whole and 0 or more, not {text!r}")
    return int(text)


def argument(parse: Callable[[str], Any]) -> Callable[[str], Any]:
    """What argparse calls: ValueErrors of `parse` are its errors, with their text."""

    def parsed(text: str) -> Any:
        try:
            return parse(text)
        except ValueError as error:
            raise argparse.ArgumentTypeError(str(error)) from None

    return parsed


_SECONDS = {"ms": 0.001, "": 1, "s": 1, "m": 60, "h": 3600}


def seconds(text: str) -> float:
    """0.5, 500ms, 1s, 5m, 2h."""
    found = re.fullmatch(r"(\d+(?:\.\d+)?)(ms|s|m|h|)", text)
    if found is None:
        raise ValueError(f"a time is 500ms, 1s, 5m or 2h, not {text!r}")
    return float(found[1]) * _SECONDS[found[2]]


def shape_argument(text: str) -> tuple[int, ...]:
    """50,3 as the shape of a row; () of none."""
    if text in ("none", "()"):
        return ()
    sizes = text.strip("()").split(",")
    if not all(size.strip().isdecimal() and int(size) > 0 for size in sizes):
        raise ValueError(f"a shape is 50,3 or none, not {text!r}")
    return tuple(map(int, sizes))


class _Closed(io.RawIOBase):
    """A standard stream that the shell closed (>&-): using it is an error that names it."""

    def __init__(self, name: str, filename: str | None) -> None:
        self._name, self._filename = name, filename

    def _fails(self, *_: object) -> Any:
        raise OSError(errno.EBADF, "is closed", *([self._filename] if self._filename else []))

    readinto = write = fileno = _fails

    def readable(self) -> bool:
        return self._name == "stdin"

    def writable(self) -> bool:
        return self._name == "stdout"


def open_closed_streams() -> None:
    """Python has None for a standard stream that is closed: what is used is an error, of errors nothing is
    said."""
    if sys.stdin is None:
        sys.stdin = io.TextIOWrapper(io.BufferedReader(_Closed("stdin", "standard input")))
    if sys.stdout is None:
        sys.stdout = io.TextIOWrapper(io.BufferedWriter(_Closed("stdout", None)))
    if sys.stderr is None:
        sys.stderr = open(os.devnull, "w")  # noqa: PTH123, SIM115


class Line:
    """How far work is: one line on standard error, where that is a terminal."""

    def __init__(self, name: str, quiet: bool = False) -> None:
        self._name = name
        self._shows = not quiet and sys.stderr.isatty()
        self._next = time.monotonic() + 0.5
        self._is_there = False

    def show(self, done: int, total: int, what: str) -> None:
        """`total` is 0 where nobody knows it."""
        if not self._shows or time.monotonic() < self._next:
            return
        self._next = time.monotonic() + 0.1
        share = f"{100 * done // total} % of {total:,} {what}" if total else f"{done:,} {what}"
        print(f"\r{self._name}: {share}", end="\033[K", file=sys.stderr, flush=True)
        self._is_there = True

    def end(self) -> None:
        if self._is_there:
            print("\r\033[K", end="", file=sys.stderr, flush=True)
            self._is_there = False


def bytes_text(number: float) -> str:
    """A size for people: 4.1 kB."""
    for unit in ("B", "kB", "MB", "GB"):
        if number < 1000:
            return f"{number:.3g} {unit}" if unit != "B" else f"{number:.0f} B"
        number /= 1000
    return f"{number:.4g} TB"


def for_each(files: list[str], work: Look, options: argparse.Namespace) -> int:
    """Does `work` for each file, whatever is wrong with the others; returns the exit status."""
    good = True
    for path in files:
        try:
            good = work(path, options) and good
        except (cdd.CddError, OSError, ImportError) as error:
            if is_of_output(error):
                raise
            complain(path, error)
            good = False
    return 0 if good else 1


def is_of_output(error: Exception) -> bool:
    """Whether print() failed; whatever fails at a file says its name."""
    return isinstance(error, OSError) and error.filename is None


def _repair_helps(error: Exception) -> bool:
    """Whether damage that repair() sees through keeps a file from being opened. It needs the header, too."""
    return isinstance(error, cdd.FormatError) and error.part in ("index", "chunk")


def complain(path: str, error: Exception) -> None:
    """Says on standard error what is wrong with the file."""
    text = (error.strerror if isinstance(error, OSError) else None) or str(error)
    if isinstance(error, OSError) and error.filename is not None:
        path = os.fsdecode(error.filename) if isinstance(error.filename, str | bytes) else str(error.filename)
    if isinstance(error, KeyError) and error.args:
        text = str(error.args[0])
    if isinstance(error, FileExistsError):  # it is the output that is in the way
        text = "is there already: --overwrite replaces it"
    print(text if path in text else f"{path}: {text}", file=sys.stderr)
    if _repair_helps(error):
        print(repair_hint(path), file=sys.stderr)
    tell_notes(error)


def tell_notes(error: BaseException) -> None:
    """What was done before an error, on standard error."""
    for note in getattr(error, "__notes__", ()):
        print(note, file=sys.stderr)
