"""python -m cdd: looks after files from the command line."""

import argparse
import io
import os
import sys
from collections import Counter
from collections.abc import Callable, Sequence

import cdd
from cdd.damage import MAX_CHUNK_BYTES, repair_hint
from cdd.reader import Reader

Command = Callable[[argparse.Namespace], int]
Look = Callable[[str, argparse.Namespace], bool]  # at one file: whether all is well with it


def _bytes_text(number: float) -> str:
    for unit in ("B", "kB", "MB", "GB"):
        if number < 1000:
            return f"{number:.3g} {unit}" if unit != "B" else f"{number:.0f} B"
        number /= 1000
    return f"{number:.4g} TB"


def _info(options: argparse.Namespace) -> int:
    return _for_each(options.files, _show, options)


def _show(path: str, options: argparse.Namespace) -> bool:
    with Reader(path, mmap=False) as reader:
        lines = {"rows": f"{len(reader):,}"}
        try:
            lines = {"shape": str(reader.shape), "dtype": str(reader.dtype)} | lines
        except ValueError:
            lines["dtype"] = "not known yet: nothing was appended"
        stored, raw = reader.stored_bytes, reader.nbytes
        lines["chunks"] = f"{reader.nchunks:,}"
        if reader.nchunks:
            lines["chunks"] += f", {len(reader) / reader.nchunks:.4g} rows each on average"
        lines["stored"] = f"{_bytes_text(stored)} ({stored:,} bytes)"
        lines["raw"] = f"{_bytes_text(raw)} ({raw:,} bytes)"
        if raw:
            lines["ratio"] = f"{raw / stored:.3f}"
        lines["user_meta"] = f"{len(reader.user_meta):,} bytes"
        print(path)
        for name, text in lines.items():
            print(f"  {name:<10}{text}")
        codecs, unreadable = _codecs(reader)
        for codec, (chunks, codec_stored, codec_raw) in codecs:
            share = f"{_bytes_text(codec_stored)}, ratio {codec_raw / codec_stored:.3f}"
            print(f"  {'codec':<10}{codec}: {chunks:,} chunks, {share}")
        if unreadable:
            print(f"  {'damaged':<10}{unreadable:,} chunks at least: python -m cdd verify tells which")
        return unreadable == 0


def _codecs(reader: Reader) -> tuple[list[tuple[str, tuple[int, int, int]]], int]:
    """(codec, (chunks, stored bytes, raw bytes)), the most frequent first; how many chunks do not tell."""
    chunks: Counter[str] = Counter()
    stored: Counter[str] = Counter()
    raw: Counter[str] = Counter()
    unreadable = 0
    for number in range(reader.nchunks):
        try:
            chunk = reader.chunks[number]
        except cdd.CddError:
            unreadable += 1
            continue
        chunks[chunk.codec] += 1
        stored[chunk.codec] += chunk.stored_bytes
        raw[chunk.codec] += chunk.raw_bytes
    return [(name, (n, stored[name], raw[name])) for name, n in chunks.most_common()], unreadable


def _verify(options: argparse.Namespace) -> int:
    return _for_each(options.files, _verify_one, options)


def _verify_one(path: str, options: argparse.Namespace) -> bool:
    def show(done: int, chunks: int) -> None:
        if sys.stderr.isatty() and not options.quiet:
            end = "\r" if done < chunks else "\r\033[K"
            print(
                f"{path}: {100 * done // chunks} % of {chunks:,} chunks", end=end, file=sys.stderr, flush=True
            )

    report = cdd.verify(path, max_chunk_bytes=options.max_chunk_bytes, progress=show)
    if not report.ok or not options.quiet:
        print(report)
    return report.ok


def _for_each(files: list[str], work: Look, options: argparse.Namespace) -> int:
    good = True
    for path in files:
        try:
            good = work(path, options) and good
        except (cdd.CddError, OSError, ImportError) as error:
            if _is_of_output(error):
                raise
            _complain(path, error)
            if _repair_helps(path, error):
                print(repair_hint(path), file=sys.stderr)
            good = False
    return 0 if good else 1


def _is_of_output(error: Exception) -> bool:
    """Whether print() failed; whatever fails at a file says its name."""
    return isinstance(error, OSError) and error.filename is None


def _repair_helps(path: str, error: Exception) -> bool:
    """Whether what keeps a file from being opened is its index. Its header repair() needs as well."""
    text = str(error).replace(path, "")
    of_the_index = any(part in text for part in ("index block", "was cut", "none of its chunks"))
    return of_the_index and isinstance(error, cdd.ChecksumError | cdd.TruncatedError)


def _complain(path: str, error: Exception) -> None:
    text = (error.strerror if isinstance(error, OSError) else None) or str(error)
    if isinstance(error, FileExistsError):  # it is the output that is in the way
        path, text = error.filename, "is there already: --overwrite replaces it"
    print(text if path in text else f"{path}: {text}", file=sys.stderr)


def _repair(options: argparse.Namespace) -> int:
    report = cdd.repair(
        options.file,
        options.output,
        overwrite=options.overwrite,
        max_chunk_bytes=options.max_chunk_bytes,
    )
    print(report)
    return 0 if not report.lost and report.complete else 1


def _truncate(options: argparse.Namespace) -> int:
    rows = cdd.truncate(
        options.file, options.output, rows=options.rows, chunks=options.chunks, overwrite=options.overwrite
    )
    print(f"{options.output or options.file}: {rows:,} rows")
    return 0


def _compact(options: argparse.Namespace) -> int:
    names = ("profile", "codec", "level", "chunk_bytes", "chunk_rows", "overwrite")
    before, after = cdd.compact(
        options.file, options.output, **{name: getattr(options, name) for name in names}
    )
    sizes = f"{_bytes_text(before)} -> {_bytes_text(after)}"
    if options.output is None and after >= before:
        print(f"{options.file}: {sizes} would not be smaller, it stays as it was")
    else:
        print(f"{options.output or options.file}: {sizes}")
    return 0


def _natural(text: str) -> int:
    number = int(text)
    if number < 0:
        raise argparse.ArgumentTypeError(f"{number} is less than 0")
    return number


def _add_threads(parser: argparse.ArgumentParser, default: int | str) -> None:
    text = "cores to use (default: all)"
    parser.add_argument("--threads", type=_natural, default=default, metavar="N", help=text)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m cdd",
        description="Looks after cdd files.",
        epilog="Exit status: 0 all is well, 1 a file is damaged or something failed, 2 wrong arguments.",
    )
    parser.add_argument("--version", action="version", version=f"cdd {cdd.__version__}")
    _add_threads(parser, 0)
    commands = parser.add_subparsers(required=True, metavar="COMMAND")

    def command(name: str, work: Command, text: str) -> argparse.ArgumentParser:
        added = commands.add_parser(name, help=text, description=text)
        added.set_defaults(work=work)
        _add_threads(added, argparse.SUPPRESS)  # what stands before the command stays
        return added

    info = command("info", _info, "Shows shape, dtype, chunks, codecs and sizes.")
    verify = command("verify", _verify, "Reads files with every check there is and says what is damaged.")
    for several in (info, verify):
        several.add_argument("files", nargs="+", metavar="FILE")
    verify.add_argument("-q", "--quiet", action="store_true", help="only say what is damaged")
    repair = command(
        "repair",
        _repair,
        "Writes every whole chunk of a damaged file to a new one, without trusting the index, and says which "
        "rows are lost. The damaged file is not touched.",
    )
    truncate = command(
        "truncate",
        _truncate,
        "Keeps the first rows of a file. Without --output a new file with them replaces it as a whole.",
    )
    compact = command(
        "compact",
        _compact,
        "Writes a file anew, in full chunks and with codecs chosen again. Without --output the new file "
        "replaces it as a whole, if it is smaller.",
    )
    for single in (repair, truncate, compact):
        single.add_argument("file", metavar="FILE")
        single.add_argument("--overwrite", action="store_true", help="replace OUT when it exists")
    for careful, as_what in (verify, "refuse to read them"), (repair, "they count as lost"):
        careful.add_argument(
            "--max-chunk-bytes",
            type=_natural,
            default=MAX_CHUNK_BYTES,
            metavar="N",
            help=f"chunks of more bytes in memory: {as_what}",
        )
    for in_place in (truncate, compact):
        in_place.add_argument("--output", "-o", metavar="OUT", help="write to OUT, leave FILE alone")
    repair.add_argument("--output", "-o", metavar="OUT", help="(default: FILE's name with .repaired.cdd)")
    kept = truncate.add_mutually_exclusive_group(required=True)
    kept.add_argument("--rows", type=_natural, metavar="N", help="rows to keep")
    kept.add_argument("--chunks", type=_natural, metavar="N", help="chunks to keep")
    compact.add_argument("--profile", choices=("fast", "dense"), default="dense", help="(default: dense)")
    compact.add_argument(
        "--codec", choices=cdd.CODECS, default="auto", metavar="NAME", help="one of cdd.CODECS"
    )
    compact.add_argument("--level", type=_natural, default=3, metavar="N", help="of zstd (default: 3)")
    compact.add_argument(
        "--chunk-bytes", type=_natural, metavar="N", help="stored bytes of a chunk (default: 4096)"
    )
    compact.add_argument("--chunk-rows", type=_natural, metavar="N", help="instead: rows of a chunk")
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
        if not _is_of_output(error):
            _complain(getattr(options, "file", "cdd"), error)
        else:
            if not isinstance(error, BrokenPipeError):  # whoever closed the pipe has seen enough
                _complain("standard output", error)
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # else Python tries again
        return 1
    return status


if __name__ == "__main__":
    sys.exit(main())
