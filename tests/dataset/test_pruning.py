"""Expiring and pruning: what is deleted, and what never is."""

import asyncio
import gc
import os
import weakref
from pathlib import Path

import numpy as np
import pytest

import cdd
import cdd.dataset as datasets
from cdd.dataset.protocol.identity import files_lock
from tests.dataset.test_changing import filled


def test_tags_expiry_prune(tmp_path: Path) -> None:
    path = tmp_path / "set"
    first = filled(path)
    datasets.tag(path, "paper", first)
    for i in range(5):
        with datasets.transaction(path) as t:
            t["price"][i] = 99.0
    last = int(datasets.open(path).version)
    datasets.expire(path, keep=2)
    assert len(datasets.open(path, as_of="paper")) == 100
    with pytest.raises(datasets.VersionExpiredError) as caught:
        datasets.open(path, as_of=last - 2)
    assert caught.value.floor == last - 1
    with pytest.raises(datasets.VersionExpiredError):
        datasets.tag(path, "late", last - 2)
    with pytest.raises(datasets.DatasetError, match="given once"):
        datasets.tag(path, "paper")
    report = datasets.prune(path)
    assert report.deleted
    assert np.array_equal(datasets.open(path, as_of="paper")["price"][:], np.arange(100) / 2)
    ds = datasets.open(path)
    assert ds["price"][:6].tolist() == [99] * 5 + [2.5]
    assert ds.verify().ok
    assert not datasets.prune(path).deleted
    names = {p.name for p in (path / "data" / "price").iterdir()}
    held = path / "meta" / "manifests" / f"{datasets.open(path, as_of='paper')._state.manifest}.json"
    assert held.exists()
    datasets.untag(path, "paper")
    datasets.expire(path, keep=1)
    datasets.prune(path)
    assert {p.name for p in (path / "data" / "price").iterdir()} <= names
    assert not held.exists()
    assert len(list((path / "meta" / "manifests").iterdir())) == 2  # of the versions that say so
    (path / "meta" / "pruned").write_text("nonsense")
    assert not datasets.prune(path).deleted
    assert datasets.open(path).verify().ok
    assert [v.op for v in datasets.open(path).versions()] == ["expire", "tag"]


def test_prune_leaves_what_the_living_have(tmp_path: Path) -> None:
    path = tmp_path / "set"
    filled(path)
    t = datasets.transaction(path)
    t["price"][0] = 1.0
    dead = datasets.transaction(path)
    dead["price"][1] = 1.0
    orphan = dead._draft.files[0]
    dead._draft.files = []
    dead._draft.close()
    report = datasets.prune(path, orphans=True)
    assert report.deleted == (orphan,)
    t.commit()
    assert datasets.open(path)["price"][0] == 1
    assert datasets.open(path).verify().ok


def files_below(path: Path) -> set[str]:
    return {file.name for file in (path / "data" / "x").glob("__*.cdd")}


def test_a_number_of_a_dropped_column_is_not_used_again(tmp_path: Path) -> None:
    """Prune tells files by names: with lost notes it would delete what a later version has."""
    path = tmp_path / "set"
    filled(path)
    seen: set[str] = set()
    for turn in range(3):
        before = files_below(path)
        with datasets.transaction(path) as t:
            t.add_column("x", np.arange(100) + turn)
        with datasets.transaction(path) as t:
            t["x"][0] = -1
        kept = datasets.open(path).version
        datasets.tag(path, f"turn {turn}")
        assert not seen & (files_below(path) - before)
        seen |= files_below(path)
        with datasets.transaction(path) as t:
            if turn == 1:
                t.rename_column("x", "y")
                t.add_column("x", np.zeros(100))
                t["x"][0] = 5
                t.drop_column("y")
            t.drop_column("x")
        datasets.expire(path, keep=1)
        datasets.prune(path)
        (path / "meta" / "pruned").unlink()
        datasets.prune(path)
        for tag in range(turn + 1):
            ds = datasets.open(path, as_of=f"turn {tag}")
            assert ds["x"][:2].tolist() == [-1, tag + 1]
        assert datasets.open(path, as_of=kept).verify().ok


def test_a_number_that_others_had_meanwhile_is_not_used(tmp_path: Path) -> None:
    path = tmp_path / "set"
    filled(path)
    with datasets.transaction(path) as slow:
        for value in (1, 2, 3):
            with datasets.transaction(path) as t:
                t["price"][0] = value
        datasets.expire(path, keep=1)
        datasets.prune(path)  # numbers 2 and 3 are free now
        slow["price"][1] = 4
    made = slow.version
    with datasets.transaction(path) as t:
        t["price"][1] = 5
    with datasets.transaction(path) as t:
        t["price"][2] = 6
    (path / "meta" / "pruned").unlink()
    datasets.prune(path)
    ds = datasets.open(path, as_of=made)
    assert ds["price"][:3].tolist() == [3, 4, 1]
    assert ds.verify().ok


def test_one_prunes_at_a_time(tmp_path: Path) -> None:
    for place in (datasets.LocalDirectory(tmp_path / "set"), datasets.MemoryDirectory()):
        filled(place)
        with files_lock(place), pytest.raises(BlockingIOError, match="prunes"):
            datasets.prune(place)
        datasets.prune(place, orphans=True)


def test_files_are_adopted_under_numbers_of_their_own(tmp_path: Path) -> None:
    cdd.save(tmp_path / "x.cdd", np.arange(10))
    path = tmp_path / "set"
    seen: set[str] = set()
    for _ in range(3):
        datasets.adopt(path, clock=None, x=tmp_path / "x.cdd")
        with datasets.transaction(path) as t:
            assert len(files_below(path)) == 1
            assert not seen & files_below(path)
            seen |= files_below(path)
            t.drop_column("x")
        datasets.expire(path, keep=1)
        datasets.prune(path)
        assert not files_below(path)


def test_files_are_copied_where_they_cannot_be_linked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cdd.save(tmp_path / "x.cdd", np.arange(10))
    link = os.link

    def elsewhere(source: Path, target: Path) -> None:
        if not str(source).startswith(str(tmp_path / "set")):
            raise OSError(18, "Invalid cross-device link")
        link(source, target)

    monkeypatch.setattr(os, "link", elsewhere)
    datasets.adopt(tmp_path / "set", clock=None, x=tmp_path / "x.cdd")
    found = list((tmp_path / "set" / "data" / "x").iterdir())
    assert [file.name for file in found] == ["__1__.cdd"]
    assert found[0].stat().st_nlink == 1
    assert datasets.open(tmp_path / "set")["x"][:].tolist() == list(range(10))


def test_a_superchunk_that_has_just_begun_in_memory_is_its_writers() -> None:
    place = datasets.MemoryDirectory()
    with datasets.open(place, "w") as w:
        w.append(time=np.arange(3))
        w.commit()
        place.new_store("data/time/__7__.cdd")  # as the compactor of a collector begins one
        assert datasets.prune(place, orphans=True).deleted == ()
        assert place.list("data/time")[-1] == "__7__.cdd"


def pruned(path: Path, mmap: bool | None, **options: object) -> datasets.Dataset:
    """A reader of a version whose files are deleted, none of which it opened; the newest has its rows."""
    with datasets.open(path, "w") as w:
        w.append(time=np.arange(100), ob=np.ones((100, 5, 3), np.float32), s=["a", "b"] * 50)
        w["trades"].append(time=np.arange(50), price=np.arange(50.0))
    ds = datasets.open(path, mmap=mmap, **options)  # type: ignore[call-overload]
    for codec in ("zstd", "raw"):
        with datasets.transaction(path) as t:
            t.compact(codec=codec)
    datasets.expire(path, keep=1)
    assert datasets.prune(path).deleted
    return ds  # type: ignore[no-any-return]


READS = {
    "a row": lambda ds: ds["ob"][5],
    "rows": lambda ds: ds["ob"][5:8],
    "cells": lambda ds: ds["ob"][5:8, 1:3, 0],
    "some rows": lambda ds: ds["ob"][[5, 1]],
    "a part": lambda ds: ds["ob"].read(0, 3, levels=[0, 2]),
    "read": lambda ds: ds["ob"].read(0, 3),
    "out": lambda ds: ds["ob"].read(0, 3, np.empty((3, 5, 3), np.float32)),
    "windows": lambda ds: ds["ob"].read_windows([0, 5], 3),
    "of the table": lambda ds: ds.read_windows([0, 5], 3),
    "joined": lambda ds: ds.read_windows([0, 5], 3, columns=("s",), asof={"trades": ("price",)}),
    "asof": lambda ds: ds.asof("trades"),
    "search": lambda ds: ds["time"].searchsorted(5),
    "at": lambda ds: ds.at(5),
    "chunks": lambda ds: list(ds["ob"].iter_chunks()),
    "texts": lambda ds: ds["s"].text(0, 3),
    "categories": lambda ds: ds["s"].categories,
    "table": lambda ds: ds["trades"].read(),
    "awaited": lambda ds: asyncio.run(ds["ob"].aread(0, 3)),
    "awaited windows": lambda ds: asyncio.run(ds.aread_windows([0], 3)),
}


@pytest.mark.parametrize("mmap", [None, False])
@pytest.mark.parametrize("is_live", [True, False])
def test_reading_what_was_pruned(is_live: bool, mmap: bool | None, tmp_path: Path) -> None:
    path = tmp_path / "set"
    ds = pruned(path, mmap)
    number = int(ds.version)
    if not is_live:
        ds._is_live = False
    for kind, read in READS.items():
        ds._files.close()  # what refresh() looks at was open
        told = rf"column [\w/.]+ of version {number}, superchunk 1: .*is missing: .*version {number} is expi"
        with pytest.raises(datasets.VersionExpiredError, match=told) as caught:
            read(ds)
        assert caught.value.version == number, kind
    assert ds.refresh() == is_live
    if is_live:
        for read in READS.values():
            read(ds)
        assert np.array_equal(ds["time"][:], np.arange(100))
    for file in (path / "data" / "time").iterdir():
        file.unlink()
    ds._files.close()
    if is_live:  # no version was pruned that this one shows
        with pytest.raises(cdd.FormatError, match="is missing"):
            ds["time"][0]


def test_nothing_keeps_the_session_of_a_reader(tmp_path: Path) -> None:
    gc.collect()
    gc.disable()
    try:
        ds = pruned(tmp_path / "set", None)
        session = weakref.ref(ds._session)
        ds._files.close()
        with pytest.raises(datasets.VersionExpiredError):
            ds["time"][0]
        del ds
        assert session() is None
    finally:
        gc.enable()


def test_a_follower_goes_on_where_files_are_pruned(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("cdd.dataset.awaited.FOLLOW_BYTES", 30 * 8)
    path = tmp_path / "set"
    with datasets.open(path, "w") as w:
        w.append(time=np.arange(100))
    ds = datasets.open(path)
    seen = []
    for rows in ds.follow(start=0, timeout=0):
        seen += rows["time"].tolist()
        if len(seen) < 70:
            with datasets.transaction(path) as t:
                t.compact(codec="raw")
            datasets.expire(path, keep=1)
            datasets.prune(path)
            ds._files.close()
    assert seen == list(range(100))
