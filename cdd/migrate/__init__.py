"""Arrays of other formats made into stores and datasets: resumable, verified bit for bit, in bounded memory.

    from cdd.migrate import migrate
    migrate("book.zarr", "book.cdd")                       # an array into a store
    migrate("day.h5::/lob/books", "book.cdd")              # one of a file's
    migrate("prices.parquet", "prices", into="dataset")    # columns into a dataset
    migrate("archive", "stores", workers=8)                # a folder of thousands, a process each

`python -m cdd migrate SOURCE TARGET` does the same. docs/migrating.md is the guide.
"""

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any, Literal

from cdd import arguments
from cdd.arguments import shown
from cdd.migrate import many, removing, running
from cdd.migrate.arrays import ObjectSource
from cdd.migrate.errors import (
    MissingChunksError,
    NotTheSameError,
    SourceChangedError,
    UnreadableError,
    WorkerDiedError,
)
from cdd.migrate.finding import KINDS, Given, split
from cdd.migrate.many import Job
from cdd.migrate.planning import jobs_of
from cdd.migrate.report import Planned, Report
from cdd.migrate.running import Done, How
from cdd.migrate.targets import IntoDataset, Stores, free_bytes
from cdd.migrate.workers import refuse_unguarded
from cdd.progress import Progress

__all__ = [
    "KINDS",
    "MissingChunksError",
    "NotTheSameError",
    "Planned",
    "Report",
    "SourceChangedError",
    "UnreadableError",
    "WorkerDiedError",
    "migrate",
]


def migrate(
    source: Any,
    target: str | os.PathLike[str],
    *,
    into: Literal["stores", "dataset"] = "stores",
    like: str = "auto",
    path: str | None = None,
    glob: str | None = None,
    dtype: Any = None,
    row_shape: tuple[int, ...] | None = None,
    join: Mapping[str, tuple[int, ...]] | None = None,
    times: Mapping[str, str] | None = None,
    missing: Literal["refuse", "fill"] = "refuse",
    slab_bytes: int = 64 << 20,
    verify: bool = True,
    workers: int = 1,
    client: Any = None,
    delete_source: bool = False,
    min_free: str | int = "10%",
    dry_run: bool = False,
    progress: Progress | None = None,
    **open_options: Any,
) -> Report:
    """Migrates arrays of other formats into stores, or into a dataset.

    source      a zarr array or group of format 2 or 3, a .npy, .npz, HDF5, .b2nd, .parquet, .feather, .csv,
                .cdd or raw file, FILE::NAME for one array of a file, a folder of such (see glob), or an array
                that is open (anything with shape, dtype and slices of rows)
    target      a name that ends with .cdd is a store, for a source of one array; any other is a folder, which
                gets a store for each array and each column of a table; with into="dataset" it is a dataset
    into        "dataset": arrays of a group and columns of a table, which have as many rows each, are the
                columns; files of a folder follow one another in order of their names, and files that come
                after them are added by the same call
    like        the format, where name and first bytes do not tell it: one of cdd.migrate.KINDS
    path        which array or arrays of a file, "a" or "a,b"; of a table which columns, which are then the
                rows of one array; "*" are all columns
    glob        which files of a folder, such as "**/*.zarr"; default: all whose names tell a format
    dtype, row_shape    of raw files
    join        {"book": (50, 3)}: the columns book.0.0 to book.49.2 of a table are one, whose rows have that
                shape
    times       {"time": "ns"}: int64 columns and arrays of that name, which may be a pattern such as
                "*time", are since 1970 in that unit; they become datetime64, of the same bytes
    missing     "refuse" raises MissingChunksError for a zarr array of which chunks are not there; "fill"
                takes the fill value for them
    slab_bytes  raw bytes that are read and written at a time. Memory stays below 4 slabs and 200 MB, but
                where a chunk of the source is larger than a slab
    verify      the source is read again and compared bit for bit with what was written, read from the file
                with every check
    workers     processes: each takes files of a folder, or slabs of one array
    client      instead a client of dask.distributed, whose workers see the same files
    delete_source    removes each source once it is verified
    min_free    what stays free of the target's disk, bytes or a share
    dry_run     does nothing; report.plan says what there is to do
    progress    progress(raw bytes done, raw bytes in all), now and then
    open_options     of the stores (cdd.open) or the dataset (cdd.dataset.open; clock is None unless given)

    dtype, order of rows, NaN payloads and attributes are kept; items are stored in the machine's byte order.
    A target that was begun is gone on with, after a kill at any moment too: it is its own journal, which
    TARGET/migrate.jsonl completes for many sources. Nothing is ever removed from a source that is not
    verified.

    Raises SourceChangedError (a ValueError) where the source changed since its migration began, or meanwhile;
    MissingChunksError; NotTheSameError, when a comparison fails; FileExistsError for a target that no
    migration made; TypeError and ValueError, with the array's or column's name, for strings, objects,
    structured dtypes, nulls and lists of different lengths; UnreadableError (a ValueError) for a source that
    is damaged or of another format; OSError (ENOSPC) when the disk is full or
    min_free is reached, after which the same call goes on. Of many sources those that fail are in
    report.failed, with the names of their exceptions; WorkerDiedError where a process of workers= was killed.
    """
    if into not in ("stores", "dataset"):
        raise ValueError(f'into is "stores" or "dataset", not {shown(into)}')
    if missing not in ("refuse", "fill"):
        raise ValueError(f'missing is "refuse" or "fill", not {shown(missing)}')
    arguments.size("slab_bytes", slab_bytes, 1, 1 << 40)
    arguments.size("workers", workers, 1, 1024)
    free_bytes(min_free, Path())
    if client is not None and not hasattr(client, "submit"):
        raise TypeError(f"client is one of dask.distributed, not {shown(client)}")
    if workers > 1:
        refuse_unguarded()
    how = How(missing, slab_bytes, verify, 1, min_free)
    if delete_source and not verify:
        raise ValueError("delete_source=True needs verify=True: only what was compared is removed")
    to = Path(os.fsdecode(target))
    if not isinstance(source, str | bytes | os.PathLike):
        if delete_source:
            raise ValueError("delete_source=True is for files: the array is open")
        if join is not None or times is not None:
            raise ValueError('join= and times= are for files: of an array that is open give .view("M8[ns]")')
        return _one_open(source, to, into == "dataset", how, open_options, progress)
    given = Path(os.fsdecode(source))
    removed = None if dry_run else removing.go_on(given, to, delete_source)
    if removed is not None:
        return _report([removed], verify, 1, {})
    try:
        root, inner = split(os.fsdecode(source), path)
        if delete_source and inner is not None:
            raise ValueError(f"delete_source=True is for all of a source: {inner!r} is a part of {root}")
        bad: dict[str, str] = {}
        said = Given(inner, like, glob, dtype, row_shape, join or {}, times or {})
        jobs = jobs_of(root, to, into == "dataset", said, open_options, bad)
    except FileNotFoundError:
        gone = removing.removed_before(given, many.Journal(to), ()) if delete_source else []
        if not gone:
            raise
        return _report(gone, verify, len(gone), {})
    if dry_run:
        return _looked_at(jobs, bad, many.Journal(to), missing)
    if len(jobs) == 1 and not bad and not many.Journal.is_at(to):
        return _run_one(jobs[0], root, to, how, workers, client, delete_source, progress)
    return _run_many(jobs, bad, root, to, how, workers, client, delete_source, progress)


def _one_open(
    array: Any, to: Path, is_dataset: bool, how: How, options: dict[str, Any], progress: Progress | None
) -> Report:
    source = ObjectSource(array)
    total = source.raw_bytes
    if not is_dataset and to.suffix != ".cdd":
        raise ValueError(f"the store of an open array is named: {to} does not end with .cdd")
    target = IntoDataset(to, options) if is_dataset else Stores({"array": to}, options)
    done = running.run(source, target, to.parent, how, _Teller(progress, total), None)
    return _report([done], how.verify, 0, {})


def _looked_at(jobs: Sequence[Job], bad: Mapping[str, str], journal: many.Journal, missing: str) -> Report:
    failed = dict(bad)
    plan = []
    for job in jobs:
        try:
            is_done = journal.has(job)
            with closing(job.open()) as source:
                fingerprint = source.identity()
                running.refuse_missing(source, missing)
                there = job.target_for(source).look(source, fingerprint)
                plan.append(Planned(job.name, str(job.target), source.rows, source.raw_bytes, there, is_done))
        except (OSError, ValueError, TypeError, ImportError) as error:
            failed[job.name] = f"{type(error).__name__}: {error}"
    rows, raw = sum(one.rows for one in plan), sum(one.raw_bytes for one in plan)
    begun = sum(one.is_done or bool(one.rows_there) for one in plan)
    return Report(len(plan), rows, raw, 0, False, begun, failed, tuple(plan))


# ------------------------------------------------------------ doing it


def _run_one(
    job: Job,
    root: Path,
    to: Path,
    how: How,
    workers: int,
    client: Any,
    delete_source: bool,
    progress: Progress | None,
) -> Report:
    how = How(how.missing, how.slab_bytes, how.verify, workers, how.min_free)
    if client is not None:
        (outcome,) = [result for _, result in many.by_dask(client, [job], how)]
        if isinstance(outcome, BaseException):
            raise outcome
        done = outcome
    else:
        done = many.do(job, how, _Teller(progress, many.raw_bytes(job) if progress else 0))
    if delete_source:
        removing.remove_all(root, to, job.roots, done)
    return _report([done], how.verify, int(done.resumed_at > 0), {})


def _run_many(
    jobs: list[Job],
    bad: Mapping[str, str],
    root: Path,
    to: Path,
    how: How,
    workers: int,
    client: Any,
    delete_source: bool,
    progress: Progress | None,
) -> Report:
    journal = many.Journal(to)
    finished: list[Done] = []
    failed = dict(bad)
    left = []
    resumed = 0
    removal = removing.Removal(jobs if delete_source else ())
    if delete_source:
        finished += removing.removed_before(root, journal, jobs)
        resumed = len(finished)
    for job in jobs:
        try:
            if journal.has(job):
                entry = journal.knows(job.name) or {}
                finished.append(Done(entry["rows"], entry["raw_bytes"], entry["stored_bytes"], "", 0))
                resumed += 1
                removal.done(job)
            else:
                left.append(job)
        except (OSError, ValueError, TypeError) as error:
            failed[job.name] = f"{type(error).__name__}: {error}"
    total = _total(left) if progress else 0
    tell = _Teller(progress, total)
    outcomes: Iterator[many.Outcome]
    in_turn = client is None and (workers == 1 or len(left) < 2)
    if in_turn:
        outcomes = many.in_turn(left, how, tell)
    elif client is not None:
        outcomes = many.by_dask(client, left, how)
    else:
        outcomes = many.in_processes(left, how, workers)
    for job, outcome in outcomes:
        if isinstance(outcome, BaseException):
            if outcome is tell.error or many.is_full(outcome) or not isinstance(outcome, Exception):
                raise outcome
            failed[job.name] = f"{type(outcome).__name__}: {outcome}"
            continue
        journal.add(job, outcome)
        finished.append(outcome)
        resumed += outcome.resumed_at > 0
        if not in_turn:
            tell(outcome.raw_bytes)
        removal.done(job)
    return _report(finished, how.verify, resumed, failed)


def _total(jobs: Sequence[Job]) -> int:
    total = 0
    for job in jobs:
        try:
            total += many.raw_bytes(job)
        except (OSError, ValueError, TypeError):
            continue  # said when it is its turn
    return total


class _Teller:
    """Tells progress() of bytes. `error` is what that raised, which is no source's."""

    def __init__(self, progress: Progress | None, total: int) -> None:
        self._progress = progress
        self._total = total
        self._done = 0
        self.error: Exception | None = None

    def __call__(self, more: int) -> None:
        self._done += more
        if self._progress is not None:
            try:
                self._progress(min(self._done, self._total), self._total)
            except Exception as error:
                self.error = error
                raise


def _report(done: Sequence[Done], verified: bool, resumed: int, failed: Mapping[str, str]) -> Report:
    return Report(
        len(done),
        sum(one.rows for one in done),
        sum(one.raw_bytes for one in done),
        sum(one.stored_bytes for one in done),
        verified,
        resumed,
        failed,
    )
