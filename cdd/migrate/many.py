"""Folders and files of many arrays: what is to be done, who does it, and the journal of what is done.

A journal is TARGET/migrate.jsonl: a line for each source that is migrated and verified. A source that fails
does not keep the others from being migrated; a full disk does.
"""

import errno
import json
import os
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from cdd.dataset.collecting.incoming import check_clock
from cdd.migrate import running
from cdd.migrate.errors import SourceChangedError
from cdd.migrate.finding import Spec
from cdd.migrate.running import Done, How
from cdd.migrate.source import Aligned, Chained, Source, listed
from cdd.migrate.targets import IntoDataset, Stores, Target
from cdd.migrate.workers import Workers

JOURNAL = "migrate.jsonl"


@dataclass(frozen=True)
class Job:
    """Sources that are one migration: `specs`, of which `groups` says how many belong together side by side;
    groups follow one another. `paths` are the stores of columns, by name, or of all of them under "*"; None:
    a dataset at `target`."""

    name: str
    target: Path
    specs: tuple[Spec, ...]
    groups: tuple[int, ...]
    is_dataset: bool
    options: Mapping[str, Any] = field(default_factory=dict)
    is_chained: bool = False  # of one group, too: others may follow it
    times: Mapping[str, str] = field(default_factory=dict)  # units of int64 columns that are times

    @property
    def roots(self) -> tuple[Path, ...]:
        """The files and folders that it is made of."""
        return tuple(dict.fromkeys(spec.path for spec in self.specs))

    def open(self) -> Source:
        groups = []
        at = 0
        for count in self.groups:
            groups.append(partial(self._open, self.specs[at : at + count]))
            at += count
        clock = self._clock() if self.is_dataset else None
        source = (
            groups[0]() if len(groups) == 1 and not self.is_chained else Chained(self.name, groups, clock)
        )
        try:
            source.take_as_times(self.times)
            if clock is not None:
                _check_clock(source, clock)
        except BaseException:
            source.close()
            raise
        return source

    def _clock(self) -> str | None:
        clock = self.options.get("clock")
        return clock.get("") if isinstance(clock, Mapping) else clock

    def _open(self, specs: tuple[Spec, ...]) -> Source:
        """Sources side by side."""
        opened: list[Source] = []
        try:
            for spec in specs:
                opened.append(spec.open())
            source = opened[0] if len(specs) == 1 else Aligned(str(specs[0].path), opened)
            if self.is_dataset:
                source.attrs = {**specs[0].attrs_of_all(), **source.attrs}
            return source
        except BaseException:
            for one in opened:
                one.close()
            raise

    def target_for(self, source: Source) -> Target:
        if self.is_dataset:
            return IntoDataset(self.target, self.options)
        if self.target.suffix == ".cdd":
            if len(source.columns) > 1:
                raise ValueError(
                    f"{source.name} has {len(source.columns)} columns, {listed(source.columns)}: a store "
                    'holds one array. path="a,b" or "*" makes one of several, join= '
                    "a book of its numbers; a target without .cdd gets a "
                    'store for each, into="dataset" a dataset'
                )
            return Stores(dict.fromkeys(source.columns, self.target), self.options)
        return Stores({n: self.target / file_name(n) for n in source.columns}, self.options)


def _check_clock(source: Source, clock: str) -> None:
    kind = source.columns.get(clock)
    if kind is None:
        raise ValueError(f"clock is {clock!r}: {source.name} has the columns {listed(source.columns)}")
    try:
        check_clock("", clock, kind.dtype, len(kind.row_shape))
    except ValueError as error:
        raise ValueError(f"{source.name}: {error}") from None


def file_name(name: str) -> str:
    """The store of an array or a column, as a path below the target whatever the name is."""
    parts = [part for part in name.replace("\\", "/").split("/") if part not in ("", ".", "..")]
    return f"{'/'.join(parts) or 'array'}.cdd"


def do(job: Job, how: How, tell: running.Tell = running.no_progress) -> Done:
    """Does a job, in this process or another."""
    source = job.open()
    try:
        spec = job.specs[0] if len(job.specs) == 1 else None
        folder = job.target.parent if job.target.suffix == ".cdd" else job.target
        return running.run(source, job.target_for(source), folder, how, tell, spec)
    finally:
        source.close()


def raw_bytes(job: Job) -> int:
    source = job.open()
    try:
        return source.raw_bytes
    finally:
        source.close()


# ------------------------------------------------------------ the journal


class Journal:
    """Which jobs of a target are done."""

    def __init__(self, target: Path) -> None:
        self._path = target / JOURNAL
        self._done: dict[str, dict[str, Any]] = {}
        if self._path.exists():
            for line in self._path.read_bytes().split(b"\n"):
                try:
                    entry = json.loads(line)
                    self._done[entry["source"]] = entry
                except (ValueError, KeyError, TypeError):
                    continue  # the last one, which a kill cut off: its source is verified again

    @staticmethod
    def is_at(target: Path) -> bool:
        """Whether an earlier call migrated many into a folder."""
        return (target / JOURNAL).exists()

    def has(self, job: Job) -> bool:
        """Whether it is done. Raises SourceChangedError where its source changed since."""
        entry = self._done.get(job.name)
        if entry is None:
            return False
        source = job.open()
        try:
            if source.identity() != entry["fingerprint"]:
                raise SourceChangedError(
                    f"{job.name} changed since it was migrated: remove {job.target} first"
                )
        finally:
            source.close()
        return True

    def below(self, source: Path) -> list[tuple[Path, dict[str, Any]]]:
        """What was done of a file or folder and all in it, each with its path."""
        found = []
        for name, entry in self._done.items():
            path = Path(name.partition("::")[0])
            if path == source or source in path.parents:
                found.append((path, entry))
        return found

    def knows(self, name: str) -> dict[str, Any] | None:
        return self._done.get(name)

    def add(self, job: Job, done: Done) -> None:
        self._path.parent.mkdir(parents=True, exist_ok=True)
        entry = {
            "source": job.name,
            "target": str(job.target),
            "rows": done.rows,
            "raw_bytes": done.raw_bytes,
            "stored_bytes": done.stored_bytes,
            "fingerprint": done.fingerprint,
        }
        descriptor = os.open(self._path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o666)
        try:
            line = json.dumps(entry).encode() + b"\n"
            if os.fstat(descriptor).st_size and not _ends_a_line(self._path):
                line = b"\n" + line
            os.write(descriptor, line)
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
        self._done[job.name] = entry


def _ends_a_line(path: Path) -> bool:
    with path.open("rb") as file:
        file.seek(-1, os.SEEK_END)
        return file.read(1) == b"\n"


# ------------------------------------------------------------ who does it

Outcome = tuple[Job, Done | BaseException]


def is_full(error: BaseException) -> bool:
    """Whether the disk is the reason, so that all else would fail, too."""
    return isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT)


def in_turn(jobs: Sequence[Job], how: How, tell: running.Tell) -> Iterator[Outcome]:
    """One after the other, in this process."""
    for job in jobs:
        try:
            yield job, do(job, how, tell)
        except Exception as error:
            yield job, error


def in_processes(jobs: Sequence[Job], how: How, count: int) -> Iterator[Outcome]:
    """Each job in one of `count` processes. When one of these is killed, so are the others: the jobs that
    were under way are done again, each in a process of its own. One whose process is killed then, too, has
    WorkerDiedError as its outcome."""
    workers = Workers()
    waiting = iter(jobs)
    while True:
        suspects: list[Job] = []
        yield from _in_pool(waiting, how, workers, count, suspects)
        if not suspects:
            return
        workers.need_one(suspects[0].name)
        for job in suspects:
            again: list[Job] = []
            yield from _in_pool(iter([job]), how, workers, 1, again)
            if again:
                yield job, workers.died(job.name)


def _in_pool(
    waiting: Iterator[Job], how: How, workers: Workers, count: int, suspects: list[Job]
) -> Iterator[Outcome]:
    """Until there are no more jobs, or a process is killed: `suspects` gets those that were under way."""
    with workers.pool(count, keep_apart=count > 1) as pool:
        under_way: dict[Future[Done], Job] = {}
        try:
            while True:
                while not suspects and len(under_way) < 2 * count:
                    job = next(waiting, None)
                    if job is None:
                        break
                    try:
                        under_way[pool.submit(do, job, how)] = job
                    except BrokenProcessPool:
                        suspects.append(job)
                if not under_way:
                    return
                for future in wait(under_way, return_when=FIRST_COMPLETED).done:
                    job = under_way.pop(future)
                    error = future.exception()
                    if isinstance(error, BrokenProcessPool):
                        suspects.append(job)
                    else:
                        yield job, future.result() if error is None else error
        finally:
            pool.shutdown(cancel_futures=True)


def by_dask(client: Any, jobs: Sequence[Job], how: How) -> Iterator[Outcome]:
    """Each job on a worker of dask.distributed, which sees the same files. One whose worker dies goes on
    where it was, on another."""
    from importlib import import_module

    completed = import_module("distributed").as_completed
    futures = {client.submit(do, job, how, pure=False, retries=2): job for job in jobs}
    try:
        for future in completed(list(futures)):
            job = futures[future]
            error = future.exception()
            yield job, future.result() if error is None else error
    finally:
        client.cancel(list(futures))
