"""Whether all that a manifest names is there and reads."""

import math
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field

from cdd.logical.digests import first_difference
from cdd.logical.plan import Reading

Progress = Callable[[int, int], None]
BLOCK_BYTES = 64 << 20  # about so much is read at once


@dataclass
class LogicalReport:
    """What check() or verify() found. print(report) shows it."""

    path: str | None
    name: str = ""
    members: int = 0  # that were looked at
    bytes: int = 0  # as arrays, that were read
    problems: list[tuple[str, str]] = field(default_factory=list)  # (member, what is wrong)
    orphans: list[str] = field(default_factory=list)  # arrays of the group, files of the folder: prune()

    @property
    def ok(self) -> bool:
        """Whether nothing is wrong. Orphans are in nobody's way."""
        return not self.problems

    def __str__(self) -> str:
        head = f"{self.path or 'logical array'}{f': {self.name}' if self.name else ''}: "
        state = "all is well" if self.ok else f"{len(self.problems)} problems"
        lines = [f"{head}{state}, {self.members:,} members, {self.bytes:,} bytes read"]
        lines += [f"  {name}: {text}" for name, text in self.problems]
        lines += [f"  {orphan} is in no manifest: prune() deletes it" for orphan in self.orphans]
        return "\n".join(lines)


def verify_reading(reading: Reading, report: LogicalReport, progress: Progress | None = None) -> None:
    """Opens every member, reads every element, and compares rows with digests; adds to the report."""
    bad = open_all(reading, report)
    manifest = reading.manifest
    regions = manifest.regions()
    row_bytes = math.prod(manifest.shape[1:]) * manifest.dtype.itemsize
    rows = max(1, BLOCK_BYTES // max(1, row_bytes))
    if progress is not None:
        progress(0, len(regions))
    for done, region in enumerate(regions, 1):
        if region.member not in bad:
            try:
                for first in range(region.lo[0], region.hi[0], rows):
                    box = [range(lo, hi) for lo, hi in zip(region.lo, region.hi, strict=True)]
                    box[0] = range(first, min(first + rows, region.hi[0]))
                    report.bytes += reading.read(box).nbytes
            except Exception as error:  # a member raises what it wants
                report.problems.append((region.member, f"{type(error).__name__}: {error}"))
        if progress is not None:
            progress(done, len(regions))
    for number, member in enumerate(manifest.members):
        if member.name in bad or not member.digests:
            continue
        with suppress(Exception):  # what cannot be read is reported above
            differs = first_difference(member.digests, reading.source(number).array)
            if differs is not None:
                text = f"rows {differs[0]} to {differs[1]} are not what they were when they were pinned"
                report.problems.append((member.name, text))


def open_all(reading: Reading, report: LogicalReport) -> set[str]:
    """Opens every member; returns the names of those that cannot be opened."""
    bad = set()
    for number, member in enumerate(reading.manifest.members):
        report.members += 1
        try:
            reading.source(number)
        except Exception as error:
            report.problems.append((member.name, f"{type(error).__name__}: {error}"))
            bad.add(member.name)
    return bad
