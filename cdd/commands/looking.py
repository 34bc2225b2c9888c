"""Commands that look at files and change nothing: info, verify."""

import argparse
import json
import sys
from collections import Counter

import cdd
from cdd.commands import dataset, facts, logical, tiles
from cdd.commands.terminal import Commands, bytes_text, for_each, natural
from cdd.store.damage import MAX_CHUNK_BYTES
from cdd.store.reader import Reader


def add(commands: Commands) -> None:
    info = commands.add("info", _info, "Shows shape, dtype, chunks, codecs and sizes.")
    verify = commands.add("verify", _verify, "Reads files with every check there is, says what is damaged.")
    for several in (info, verify):
        several.add_argument("files", nargs="+", metavar="FILE")
        several.add_argument("--json", action="store_true", help="one JSON object a line")
        logical.add_arguments(several)
    verify.add_argument("-q", "--quiet", action="store_true", help="only say what is damaged")
    verify.add_argument(
        "--max-chunk-bytes",
        type=natural,
        default=MAX_CHUNK_BYTES,
        metavar="N",
        help="chunks of more bytes in memory: refuse to read them",
    )


def _info(options: argparse.Namespace) -> int:
    return for_each(options.files, _show, options)


def _show(path: str, options: argparse.Namespace) -> bool:
    if options.json:
        return facts.show(path, options, _codecs)
    if tiles.is_tiles(path):
        return tiles.show(path)
    if dataset.is_dataset(path):
        return dataset.show(path, options)
    if logical.is_logical(path):
        return logical.show(path, options)
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
        lines["stored"] = f"{bytes_text(stored)} ({stored:,} bytes)"
        lines["raw"] = f"{bytes_text(raw)} ({raw:,} bytes)"
        if raw:
            lines["ratio"] = f"{raw / stored:.3f}"
        lines["user_meta"] = f"{len(reader.user_meta):,} bytes"
        if reader.attrs:
            lines["attrs"] = json.dumps(reader.attrs, ensure_ascii=False)
        lines["id"] = reader.id
        print(path)
        for name, text in lines.items():
            print(f"  {name:<10}{text}")
        codecs, unreadable = _codecs(reader)
        for codec, (chunks, codec_stored, codec_raw) in codecs:
            share = f"{bytes_text(codec_stored)}, ratio {codec_raw / codec_stored:.3f}"
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
            chunk = reader.chunk_infos[number]
        except cdd.CddError:
            unreadable += 1
            continue
        chunks[chunk.codec] += 1
        stored[chunk.codec] += chunk.stored_bytes
        raw[chunk.codec] += chunk.raw_bytes
    return [(name, (n, stored[name], raw[name])) for name, n in chunks.most_common()], unreadable


def _verify(options: argparse.Namespace) -> int:
    if options.json:
        options.quiet = True  # no progress; of what is whole there is no more to say
        return for_each(options.files, lambda path, _: facts.verify(path, options, _verify_one), options)
    return for_each(options.files, _verify_one, options)


def _verify_one(path: str, options: argparse.Namespace) -> bool:
    def show(done: int, chunks: int) -> None:
        if sys.stderr.isatty() and not options.quiet:
            end = "\r" if done < chunks else "\r\033[K"
            print(
                f"{path}: {100 * done // chunks} % of {chunks:,} chunks", end=end, file=sys.stderr, flush=True
            )

    if tiles.is_tiles(path):
        return tiles.verify(path, options.quiet)
    if dataset.is_dataset(path):
        return dataset.verify_one(path, options)
    if logical.is_logical(path):
        return logical.verify_one(path, options)
    report = cdd.verify(path, max_chunk_bytes=options.max_chunk_bytes, progress=show)
    if not report.ok or not options.quiet:
        print(report)
    return report.ok
