"""What info and verify say of logical arrays: JSON manifests, icechunk repositories, zarr stores."""

import argparse
import json
import os
import sys
from collections import Counter
from pathlib import Path

from cdd import logical
from cdd.commands.terminal import bytes_text
from cdd.logical.repo import is_repository


def add_arguments(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("logical arrays")
    group.add_argument("--name", metavar="NAME", help="of one array in a repository or store (default: all)")
    group.add_argument(
        "--allow",
        action="append",
        default=[],
        metavar="PLACE",
        help="open what manifests name below this directory or URL; may be given again",
    )
    for what in ("branch", "tag", "snapshot"):
        group.add_argument(f"--{what}", metavar=what.upper(), help=f"the {what} of an icechunk repository")


def is_logical(path: str) -> bool:
    """Whether a path is looked at as logical arrays: a JSON file, a repository, a zarr store."""
    place = Path(path)
    if place.is_dir():
        return is_repository(path) or (place / "zarr.json").exists() or (place / ".zgroup").exists()
    if not place.is_file():
        return False
    with place.open("rb") as file:
        return file.read(64).lstrip()[:1] == b"{"


# icechunk warns on standard output that commits to a local repository need a lock; transactions have one.
os.environ.setdefault("ICECHUNK_LOG", "error")


def _arrays(path: str, options: argparse.Namespace) -> list[logical.Array]:
    version = {name: getattr(options, name) for name in ("branch", "tag", "snapshot")}
    if Path(path).is_file():
        return [logical.open(path, allow=options.allow)]
    names = [options.name] if options.name else logical.names(path, **version)
    if not names:
        raise logical.LogicalError(f"{path!r} holds no logical array")
    return [logical.open(path, name, allow=options.allow, **version) for name in names]


def show(path: str, options: argparse.Namespace) -> bool:
    """info: opens no member."""
    for array in _arrays(path, options):
        manifest, regions = array.manifest, array.regions
        kinds = Counter(member.kind for member in manifest.members)
        lines = {"shape": str(array.shape), "dtype": str(array.dtype)}
        if array.dims:
            lines["dims"] = ", ".join(map(str, array.dims))
        lines["raw"] = f"{bytes_text(array.nbytes)} ({array.nbytes:,} bytes)"
        lines["grid"] = str(manifest.grid)
        lines["chunks"] = str(array.chunks)
        if array.fill_value is not None:
            lines["fill_value"] = str(array.fill_value)
        if array.version:
            lines["version"] = array.version
        if array.attrs:
            lines["attrs"] = json.dumps(array.attrs, ensure_ascii=False)
        lines["members"] = ", ".join(f"{count} {kind}" for kind, count in sorted(kinds.items())) or "none"
        lines["regions"] = f"{len(regions):,}"
        print(path if not array.name else f"{path}: {array.name}")
        for name, text in lines.items():
            print(f"  {name:<12}{text}")
        places = {member.name: member for member in manifest.members}
        for region in regions[:100]:
            box = ", ".join(f"{lo}:{hi}" for lo, hi in zip(region.lo, region.hi, strict=True))
            member = places[region.member]
            print(f"  [{box}]  {member.kind} {member.path or member.name}")
        if len(regions) > 100:
            print(f"  and {len(regions) - 100:,} more")
    return True


def verify_one(path: str, options: argparse.Namespace) -> bool:
    """verify: reads all members."""

    def tell(done: int, regions: int) -> None:
        if sys.stderr.isatty() and not options.quiet:
            end = "\r" if done < regions else "\r\033[K"
            print(f"{path}: {done} of {regions} regions", end=end, file=sys.stderr, flush=True)

    good = True
    for array in _arrays(path, options):
        with array:
            report = array.verify(tell)
        if not report.ok or not options.quiet:
            print(report)
        good = good and report.ok
    return good


def prune(path: str) -> int:
    """prune: deletes what no manifest names, and says what it was."""
    if not Path(path).is_file() and not logical.names(path):
        raise logical.LogicalError(f"{path!r} holds no logical array")
    gone = logical.prune(path)
    for name in gone:
        print(f"{path}: {name} deleted")
    print(f"{path}: {len(gone):,} arrays and files deleted that no manifest named")
    return 0
