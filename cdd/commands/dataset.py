"""Commands on datasets: versions, tag, expire, prune, and what info, verify and compact do with one."""

import argparse
import sys
from pathlib import Path

import numpy as np

from cdd.commands.terminal import Commands, bytes_text, natural


def is_dataset(path: str) -> bool:
    """Whether a path is the folder of a dataset."""
    return (Path(path) / "meta" / "dataset.json").is_file()


def add(commands: Commands) -> None:
    versions = commands.add("versions", _versions, "Lists the versions of a dataset, the newest first.")
    tag = commands.add("tag", _tag, "Names a version of a dataset, so that it is kept.")
    expire = commands.add(
        "expire", _expire, "Lets go of old versions of a dataset; prune deletes their files."
    )
    prune = commands.add("prune", _prune, "Deletes files that only expired versions needed, or none names.")
    for one in (versions, tag, expire):
        one.add_argument("file", metavar="DATASET")
    prune.add_argument("file", metavar="DATASET", help="or a JSON manifest, a repository, a zarr store")
    versions.add_argument("--last", type=natural, default=20, metavar="N", help="how many (default: 20)")
    tag.add_argument("name", metavar="NAME")
    tag.add_argument("--version", type=natural, metavar="N", help="(default: the newest)")
    tag.add_argument("--delete", action="store_true", help="take the name away")
    expire.add_argument("--keep", type=natural, metavar="N", help="versions to keep")
    expire.add_argument("--older-than", metavar="AGE", help='such as "30D" or "6h": younger ones are kept')
    prune.add_argument("--orphans", action="store_true", help="of a dataset also what killed writers left")


def _versions(options: argparse.Namespace) -> int:
    from cdd import dataset

    with dataset.open(options.file) as opened:
        names = {number: name for name, number in opened.tags.items()}
        for version in opened.versions(options.last):
            rows = ", ".join(f"{name or 'rows'} {count:,}" for name, count in version.rows.items())
            time = np.datetime_as_string(version.time, unit="s")
            line = f"{version.number:>8}  {time}  {version.op:<8} {rows}"
            line += f"  [{names[version.number]}]" if version.number in names else ""
            print(f"{line}  {version.message}".rstrip())
    return 0


def _tag(options: argparse.Namespace) -> int:
    from cdd import dataset

    if options.delete:
        dataset.untag(options.file, options.name)
        print(f"{options.file}: {options.name} is no name any more")
    else:
        dataset.tag(options.file, options.name, options.version)
        print(f"{options.file}: {options.name} is version {dataset.open(options.file).tags[options.name]}")
    return 0


def _expire(options: argparse.Namespace) -> int:
    from cdd import dataset

    dataset.expire(options.file, options.keep, options.older_than)
    print(f"{options.file}: {len(dataset.open(options.file).versions(None)):,} versions are kept")
    return 0


def _prune(options: argparse.Namespace) -> int:
    from cdd import dataset

    if not is_dataset(options.file):
        from cdd.commands import logical

        if logical.is_logical(options.file):
            return logical.prune(options.file)
    print(dataset.prune(options.file, orphans=options.orphans))
    return 0


def show(path: str) -> bool:
    """What info says of a dataset."""
    from cdd import dataset

    with dataset.open(path) as opened:
        version = opened.version
        print(path)
        time = np.datetime_as_string(version.time, unit="s")
        print(f"  {'version':<10}{version.number:,}, {version.op}, {time}")
        for name, number in opened.tags.items():
            print(f"  {'tag':<10}{name}: version {number:,}")
        for name in opened.tables:
            table = opened[name] if name else opened
            clock = f", clock {table.clock}" if table.clock else ""
            print(f"  {'table':<10}{name or '(its own)'}: {len(table):,} rows{clock}")
            for key in table.columns:
                column = table[key]
                stored = column.stored_bytes
                ratio = f", ratio {column.nbytes / stored:.3f}" if stored else ""
                files = f"{column.superchunks:,} superchunks, {bytes_text(stored)}{ratio}"
                print(f"    {key}: {column.shape} {column.dtype}, {files}")
                small = column.fragments
                if small > 64 and small * (1 << 20) > stored:
                    print(f"    {key}: {small:,} pieces: python -m cdd compact joins them")
        print(f"  {'id':<10}{opened.id}")
    return True


def verify_one(path: str, options: argparse.Namespace) -> bool:
    """verify of a dataset: every superchunk of the newest version."""
    from cdd import dataset

    def progress(done: int, columns: int) -> None:
        if sys.stderr.isatty() and not options.quiet:
            end = "\r" if done < columns else "\r\033[K"
            print(f"{path}: {done:,} of {columns:,} columns", end=end, file=sys.stderr, flush=True)

    with dataset.open(path, max_chunk_bytes=options.max_chunk_bytes) as opened:
        report = opened.verify(progress=progress)
    if not report.ok or not options.quiet:
        print(report)
    return report.ok


def compact(path: str, options: argparse.Namespace) -> int:
    """compact of a dataset: joins what is small, in a version of its own."""
    from cdd import dataset

    if options.output is not None:
        raise ValueError("a dataset is compacted in place, as a new version: --output is for files")
    with dataset.transaction(path, "compact") as t:
        files = t.compact()
    print(f"{path}: {files:,} files written, which take the place of smaller ones")
    return 0


def repair(path: str, options: argparse.Namespace) -> int:
    """repair of a dataset: new superchunks for damaged ones, in a version that says what is lost."""
    from cdd import dataset

    if options.output is not None:
        raise ValueError("a dataset is mended in place, as a new version: --output is for files")
    report = dataset.repair(path)
    print(report)
    return 1 if report.lost else 0
