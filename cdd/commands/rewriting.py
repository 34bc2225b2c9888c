"""Commands that make a new file of another's rows: repair, truncate, compact."""

import argparse

import cdd
from cdd.commands import dataset
from cdd.commands.terminal import Commands, bytes_text, natural
from cdd.store.damage import MAX_CHUNK_BYTES


def add(commands: Commands) -> None:
    repair = commands.add(
        "repair",
        _repair,
        "Writes every whole chunk of a damaged file to a new one, without trusting the index, and says which "
        "rows are lost. The damaged file is not touched. Of a dataset: mends it, in a version of its own.",
    )
    truncate = commands.add(
        "truncate",
        _truncate,
        "Keeps the first rows of a file. Without --output a new file with them replaces it as a whole.",
    )
    compact = commands.add(
        "compact",
        _compact,
        "Writes a file anew, in full chunks and with codecs chosen again. Without --output the new file "
        "replaces it as a whole, if it is smaller. Of a dataset: joins small files; with options writes all "
        "files anew.",
    )
    for single in (repair, truncate, compact):
        single.add_argument("file", metavar="FILE")
        single.add_argument("--overwrite", action="store_true", help="replace OUT when it exists")
    for mended in (repair, compact):
        mended.add_argument(
            "--allow",
            action="append",
            default=[],
            metavar="FOLDER",
            help="of a dataset: also files that were attached below this folder; may be given again",
        )
    for in_place in (truncate, compact):
        in_place.add_argument("--output", "-o", metavar="OUT", help="write to OUT, leave FILE alone")
    repair.add_argument(
        "--max-chunk-bytes",
        type=natural,
        default=MAX_CHUNK_BYTES,
        metavar="N",
        help="chunks of more bytes in memory: they count as lost",
    )
    repair.add_argument("--output", "-o", metavar="OUT", help="(default: FILE's name with .repaired.cdd)")
    kept = truncate.add_mutually_exclusive_group(required=True)
    kept.add_argument("--rows", type=natural, metavar="N", help="rows to keep")
    kept.add_argument("--chunks", type=natural, metavar="N", help="chunks to keep")
    compact.add_argument("--profile", choices=("fast", "dense"), help="(default: dense)")
    compact.add_argument("--codec", choices=cdd.CODECS, metavar="NAME", help="one of cdd.CODECS")
    compact.add_argument("--zstd-level", type=natural, metavar="N", help="1 to 22 (default: 3)")
    compact.add_argument(
        "--chunk-bytes", type=natural, metavar="N", help="stored bytes of a chunk (default: 4096)"
    )
    compact.add_argument("--chunk-rows", type=natural, metavar="N", help="instead: rows of a chunk")


def _repair(options: argparse.Namespace) -> int:
    if dataset.is_dataset(options.file):
        return dataset.repair(options.file, options)
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
    names = ("profile", "codec", "zstd_level", "chunk_bytes", "chunk_rows")
    given = {name: getattr(options, name) for name in names if getattr(options, name) is not None}
    if dataset.is_dataset(options.file):
        return dataset.compact(options.file, options, given)
    before, after = cdd.compact(options.file, options.output, overwrite=options.overwrite, **given)
    sizes = f"{bytes_text(before)} -> {bytes_text(after)}"
    if options.output is None and after >= before:
        print(f"{options.file}: {sizes} would not be smaller, it stays as it was")
    else:
        print(f"{options.output or options.file}: {sizes}")
    return 0
