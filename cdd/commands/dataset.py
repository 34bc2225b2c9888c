"""Commands on datasets: versions, tag, expire, prune, and what info, verify and compact do with one."""

import argparse
import sys
import warnings
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from cdd.commands.terminal import ArgumentError, Commands, bytes_text, natural


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


def opened(path: str, tell: bool = True, **options: Any) -> Any:
    """The dataset; what opening it warns of is told as a line, or is left to a report."""
    from cdd import dataset

    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always", RuntimeWarning)
        found = dataset.open(path, **options)
    for warning in told if tell else ():
        print(f"{path}: {warning.message}", file=sys.stderr)
    return found


def _versions(options: argparse.Namespace) -> int:
    with opened(options.file, columns=()) as ds:
        names = {number: name for name, number in ds.tags.items()}
        for version in ds.versions(options.last):
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
        print(
            f"{options.file}: {options.name} is version {opened(options.file, columns=()).tags[options.name]}"
        )
    return 0


def _expire(options: argparse.Namespace) -> int:
    from cdd import dataset

    if options.keep is None and options.older_than is None:
        raise ValueError("expire takes --keep, --older-than, or both")
    dataset.expire(options.file, options.keep, options.older_than)
    print(f"{options.file}: {len(opened(options.file, columns=()).versions(None)):,} versions are kept")
    return 0


def _prune(options: argparse.Namespace) -> int:
    from cdd import dataset

    if not is_dataset(options.file):
        from cdd.commands import logical

        if logical.is_logical(options.file):
            return logical.prune(options.file)
    print(dataset.prune(options.file, orphans=options.orphans))
    return 0


def show(path: str, options: argparse.Namespace) -> bool:
    """What info says of a dataset."""
    with opened(path, allow=options.allow) as ds:
        version = ds.version
        print(path)
        time = np.datetime_as_string(version.time, unit="s")
        print(f"  {'version':<10}{version.number:,}, {version.op}, {time}")
        for name, number in ds.tags.items():
            print(f"  {'tag':<10}{name}: version {number:,}")
        for name in ds.tables:
            table = ds[name] if name else ds
            clock = f", clock {table.clock}" if table.clock else ""
            print(f"  {'table':<10}{name or '(its own)'}: {len(table):,} rows{clock}")
            for key in table.columns:
                column = table[key]
                stored = column.stored_bytes
                ratio = f", ratio {column.nbytes / stored:.3f}" if stored else ""
                count = f"{column.superchunks:,} superchunk{'s' * (column.superchunks != 1)}"
                print(f"    {key}: {column.shape} {column.dtype}, {count}, {bytes_text(stored)}{ratio}")
                small = column.fragments
                if small > 64 and small * (1 << 20) > stored:
                    print(f"    {key}: {small:,} pieces: python -m cdd compact joins them")
        print(f"  {'id':<10}{ds.id}")
    return True


def verify_one(path: str, options: argparse.Namespace) -> bool:
    """verify of a dataset: every superchunk of the newest version."""

    def progress(done: int, columns: int) -> None:
        if sys.stderr.isatty() and not options.quiet:
            end = "\r" if done < columns else "\r\033[K"
            print(f"{path}: {done:,} of {columns:,} columns", end=end, file=sys.stderr, flush=True)

    with opened(path, tell=False, allow=options.allow, max_chunk_bytes=options.max_chunk_bytes) as ds:
        report = ds.verify(progress=progress)
    told = [column for column in report.columns if not column.ok or not options.quiet]
    if told or report.log:
        print(replace(report, columns=tuple(told)))
    return bool(report.ok)


def compact(path: str, options: argparse.Namespace, given: dict[str, Any]) -> int:
    """compact of a dataset: joins what is small, in a version of its own; with options writes all anew."""
    from cdd import dataset

    _need_in_place(options, "compacted")
    with dataset.transaction(path, "compact", allow=options.allow) as t:
        files = t.compact(**given)
    what = "others" if given else "smaller ones"
    print(f"{path}: {files:,} file{'s' * (files != 1)} written, in place of {what}")
    return 0


def _need_in_place(options: argparse.Namespace, what: str) -> None:
    if options.output is not None or options.overwrite:
        raise ArgumentError(
            f"a dataset is {what} in place, as a new version: --output and --overwrite are for files"
        )


def repair(path: str, options: argparse.Namespace) -> int:
    """repair of a dataset: new superchunks for damaged ones, in a version that says what is lost."""
    from cdd import dataset

    _need_in_place(options, "mended")
    report = dataset.repair(path, allow=options.allow)
    print(report)
    return 1 if report.lost or report.lost_texts else 0
