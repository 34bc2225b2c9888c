"""python -m cdd: looks after files from the command line. Each module here adds a group of commands."""

import argparse
import io
import os
import sys
from collections.abc import Sequence

import cdd
from cdd.commands import csv_text, dataset, looking, rewriting
from cdd.commands.terminal import Commands, add_threads, complain, is_of_output

GROUPS = (looking, rewriting, dataset, csv_text)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m cdd",
        description="Looks after cdd files.",
        epilog="Exit status: 0 all is well, 1 a file is damaged or something failed, 2 wrong arguments.",
    )
    parser.add_argument("--version", action="version", version=f"cdd {cdd.__version__}")
    add_threads(parser, 0)
    commands = Commands(parser)
    for group in GROUPS:
        group.add(commands)
    return parser


def main(arguments: Sequence[str] | None = None) -> int:
    options = _parser().parse_args(arguments)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")  # names may be any bytes
    try:
        cdd.set_threads(options.threads)
        status: int = options.work(options)
        print(end="", flush=True)
    except (cdd.CddError, OSError, ValueError, IndexError, ImportError) as error:
        if not is_of_output(error):
            complain(getattr(options, "file", "cdd"), error)
        else:
            if not isinstance(error, BrokenPipeError):  # whoever closed the pipe has seen enough
                complain("standard output", error)
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # else Python tries again
        return 1
    return status
