"""What there is to do: which files and arrays become which stores or datasets."""

from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from cdd.migrate import many
from cdd.migrate.finding import Spec, check_given, folder_of_many, kind_of, specs_of, suffix_of
from cdd.migrate.many import Job

T = TypeVar("T")


def jobs_of(
    root: Path,
    inner: str | None,
    to: Path,
    is_dataset: bool,
    like: str,
    glob: str | None,
    dtype: Any,
    row_shape: tuple[int, ...] | None,
    options: Mapping[str, Any],
    bad: dict[str, str],
) -> list[Job]:
    """What is to be migrated. Of many files those that cannot be opened go to `bad`, with the reason."""
    kind = None if glob is not None and root.is_dir() else kind_of(root, "auto" if root.is_dir() else like)
    if kind is not None:
        check_given(root, {kind}, inner, dtype, row_shape)
        specs = specs_of(root, kind, inner, dtype, row_shape)
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
    found = folder_of_many(root, to, glob, like)
    kinds = {one: _tried(partial(_kind_of_many, one, like), one, bad, is_dataset) for one in found}
    check_given(root, {kind for kind in kinds.values() if kind}, inner, dtype, row_shape)
    groups = {}
    for one, kind_of_it in kinds.items():
        if kind_of_it is not None:
            made = partial(specs_of, one, kind_of_it, inner, dtype, row_shape)
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
