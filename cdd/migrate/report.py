"""What a migration did, or what it would do."""

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Planned:
    """A source, its target, and what is there of it; as a str, a line for people.

    rows, raw_bytes   of the source
    rows_there        that the target has; None where there is none yet
    is_done           whether an earlier call finished it, and the journal of the folder says so
    """

    source: str
    target: str
    rows: int
    raw_bytes: int
    rows_there: int | None
    is_done: bool

    def __str__(self) -> str:
        state = "new" if self.rows_there is None else f"goes on after row {self.rows_there:,}"
        if self.rows_there == self.rows:
            state = "all rows are there, and are compared again"
        state = "done" if self.is_done else state
        return f"{self.source} -> {self.target}: {self.rows:,} rows, {self.raw_bytes:,} bytes: {state}"


@dataclass(frozen=True)
class Report:
    """What migrate() did; as a str, a text for people.

    sources       that were migrated, by this call or before
    rows          of all of them
    raw_bytes, stored_bytes   before and after
    verified      whether what was written was read back and compared
    resumed       sources that an earlier call had begun or done
    failed        {source: why} of those that were not migrated; nothing of them was removed
    plan          with dry_run=True what the call would do; else None
    """

    sources: int = 0
    rows: int = 0
    raw_bytes: int = 0
    stored_bytes: int = 0
    verified: bool = True
    resumed: int = 0
    failed: Mapping[str, str] = field(default_factory=dict)
    plan: tuple[Planned, ...] | None = None

    def __str__(self) -> str:
        bad = [f"not migrated: {name}: {why}" for name, why in self.failed.items()]
        if self.plan is not None:
            return "\n".join([*map(str, self.plan), self._planned(), *bad])
        ratio = f", 1/{self.raw_bytes / self.stored_bytes:.1f}" if self.stored_bytes else ""
        checked = "verified bit for bit" if self.verified else "not verified"
        sources = f"{self.sources:,} source{'s' * (self.sources != 1)}"
        text = (
            f"{sources}, {self.rows:,} rows, {self.raw_bytes:,} bytes stored in "
            f"{self.stored_bytes:,}{ratio}, {checked}"
        )
        return "\n".join([text, *bad])

    def _planned(self) -> str:
        left = sum(not planned.is_done for planned in self.plan or ())
        return (
            f"{self.sources:,} source{'s' * (self.sources != 1)}, {self.rows:,} rows, {self.raw_bytes:,} "
            f"bytes: {left:,} to do, {self.sources - left:,} done before"
        )
