"""What there is to do: which files and arrays become which stores or datasets."""

import fnmatch
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from cdd.arguments import shown
from cdd.migrate import many
from cdd.migrate.finding import Given, Spec, check_given, folder_of_many, kind_of, specs_of, suffix_of
from cdd.migrate.many import Job
from cdd.migrate.source import UNITS, listed

T = TypeVar("T")


def jobs_of(
    root: Path, to: Path, is_dataset: bool, given: Given, options: Mapping[str, Any], bad: dict[str, str]
) -> list[Job]:
    """What is to be migrated. Of many files those that cannot be opened go to `bad`, with the reason."""
    jobs = _jobs_of(root, to, is_dataset, given, options, bad)
    if given.times:
        jobs = [replace(job, times=given.times) for job in jobs]
        _check_times(jobs, given.times)
    return jobs


def _jobs_of(
    root: Path, to: Path, is_dataset: bool, given: Given, options: Mapping[str, Any], bad: dict[str, str]
) -> list[Job]:
    like = "auto" if root.is_dir() else given.like
    kind = None if given.glob is not None and root.is_dir() else kind_of(root, like)
    if kind is not None:
        check_given(root, {kind}, given)
        specs = specs_of(root, kind, given)
        if is_dataset:
            return [Job(str(root), to, tuple(specs), (len(specs),), True, options)]
        if len(specs) == 1:
            return [Job(specs[0].text, to, tuple(specs), (1,), False, options)]
        if to.suffix == ".cdd":
            raise ValueError(
                f"{root} has {len(specs)} arrays, a store holds one: path= chooses it, a target without .cdd "
                "gets a store for each"
            )
        return _distinct([_single(spec, to / many.file_name(spec.inner), options) for spec in specs])
    if to.suffix == ".cdd":
        raise ValueError(f"{root} is a folder of many: the target is a folder, too, not {to}")
    found = folder_of_many(root, to, given.glob, given.like)
    kinds = {one: _tried(partial(_kind_of_many, one, given.like), one, bad, is_dataset) for one in found}
    check_given(root, {kind for kind in kinds.values() if kind}, given)
    groups = {}
    for one, kind_of_it in kinds.items():
        if kind_of_it is not None:
            made = partial(specs_of, one, kind_of_it, given)
            groups[one] = _tried(made, one, bad, is_dataset) or []
    if is_dataset:
        flat = tuple(spec for group in groups.values() for spec in group)
        return [Job(str(root), to, flat, tuple(map(len, groups.values())), True, options, True)]
    jobs = []
    for one, group in groups.items():
        name = one.relative_to(root).as_posix()
        place = to / name.removesuffix(suffix_of(one)) if suffix_of(one) else to / name
        for spec in group:
            jobs.append(_single(spec, _place(place, spec), options))
    return _distinct(jobs)


def _check_times(jobs: Sequence[Job], times: Mapping[str, str]) -> None:
    """ValueError for a unit that is none, and for a name that no column has."""
    for name, unit in times.items():
        if unit not in UNITS:
            raise ValueError(f"times has {name!r}: the unit is one of {', '.join(UNITS)}, not {shown(unit)}")
    left, there = set(times), dict[str, None]()
    for job in jobs:
        with suppress(OSError, ValueError, TypeError, ImportError), closing(job.open()) as source:
            there |= dict.fromkeys(source.columns)
            left = {pattern for pattern in left if not fnmatch.filter(source.columns, pattern)}
        if not left:
            return
    if there:
        raise ValueError(f"times has {min(left)!r}, and no column is called so: there are {listed(there)}")


def _tried(work: Callable[[], T], one: Path, bad: dict[str, str], is_strict: bool) -> T | None:
    """What looking at one file of many gives; None for one that goes to `bad`. A dataset is made of all."""
    try:
        return work()
    except (OSError, ValueError, TypeError, ImportError) as error:
        if is_strict:
            raise
        bad[str(one)] = f"{type(error).__name__}: {error}"
        return None


def _kind_of_many(path: Path, like: str) -> str:
    kind = kind_of(path, "auto" if path.is_dir() else like)
    assert kind is not None
    return kind


def _place(place: Path, spec: Spec) -> Path:
    if spec.kind in ("parquet", "feather", "csv"):
        return place  # a folder of columns
    return place / many.file_name(spec.inner) if spec.inner else place.with_name(place.name + ".cdd")


def _single(spec: Spec, target: Path, options: Mapping[str, Any]) -> Job:
    return Job(spec.text, target, (spec,), (1,), False, options)


def _distinct(jobs: list[Job]) -> list[Job]:
    """The jobs. ValueError where two have one target."""
    seen: dict[Path, Job] = {}
    for job in jobs:
        other = seen.setdefault(job.target, job)
        if other is not job:
            raise ValueError(
                f"{other.name} and {job.name} would both become {job.target}: choose by glob= or path="
            )
    return jobs
