"""Folders of many: datasets of symbols and of days, targets within the source, what --dry-run tells, and what
is said of sources that do not fit.
"""

import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import cdd
import cdd.dataset
from cdd.migrate import MissingChunksError, SourceChangedError, UnreadableError, migrate
from tests.ecosystem.formats import book, same

zarr = pytest.importorskip("zarr")
pq = pytest.importorskip("pyarrow.parquet")
pa = pytest.importorskip("pyarrow")

FREE: dict[str, Any] = {"min_free": 0}


def times(day: int, rows: int = 50) -> Any:
    return np.datetime64("2025-01-01", "ns") + np.arange(day * 1000, day * 1000 + rows) * np.timedelta64(
        1, "s"
    )


def group(path: Path, day: int, rows: int = 50) -> None:
    made = zarr.open_group(str(path), mode="w")
    made.create_array("ob", data=book(rows, day), chunks=(20, 10, 3))
    made.create_array("time", data=times(day, rows).astype("i8"), chunks=(20,))


def table(path: Path, day: int, rows: int = 50) -> None:
    pq.write_table(pa.table({"time": times(day, rows), "x": np.arange(rows) + day}), path)


def text(path: Path, day: int, rows: int = 50) -> None:
    lines = [f"{at},{number}" for number, at in enumerate(times(day, rows))]
    path.write_text("\n".join(["time,x", *lines, ""]))


MAKERS = {".zarr": group, ".parquet": table, ".csv": text}


# ------------------------------------------------------------ one dataset for each symbol


@pytest.mark.parametrize("suffix", MAKERS)
def test_symbols_that_overlap_in_time_are_refused_before_a_row_is_written(
    suffix: str, tmp_path: Path
) -> None:
    folder = tmp_path / "s"
    folder.mkdir()
    MAKERS[suffix](folder / f"BTC{suffix}", 3)
    MAKERS[suffix](folder / f"ETH{suffix}", 1)
    wanted = rf"'time' goes back from .*BTC{suffix}, which ends with .*, to .*ETH{suffix}, which begins with"
    options: dict[str, Any] = {"into": "dataset", "clock": "time", **FREE}
    with pytest.raises(ValueError, match=wanted):
        migrate(folder, tmp_path / "d", **options)
    assert not (tmp_path / "d").exists()
    assert "goes back from" in str(migrate(folder, tmp_path / "d", dry_run=True, **options).failed)
    for file in sorted(folder.iterdir()):  # as docs/migrating.md says it
        migrate(file, tmp_path / "sets" / file.stem, **options)
    with cdd.dataset.open(tmp_path / "sets/ETH") as ds:
        assert ds.clock == "time" and len(ds) == 50


@pytest.mark.parametrize("suffix", MAKERS)
def test_days_in_order_are_one_dataset_that_grows_by_the_same_call(suffix: str, tmp_path: Path) -> None:
    folder = tmp_path / "days"
    folder.mkdir()
    make = MAKERS[suffix]

    def call() -> Any:
        return migrate(folder, tmp_path / "d", into="dataset", clock="time", **FREE)

    for last in range(4):
        make(folder / f"2025-01-0{last + 1}{suffix}", last, 50 + last)
        report = call()
        assert report.rows == sum(50 + day for day in range(last + 1)) and report.resumed == (last > 0)
    wanted = np.concatenate([times(day, 50 + day) for day in range(4)])
    with cdd.dataset.open(tmp_path / "d") as ds:
        assert ds["time"][:].astype("M8[ns]").tolist() == wanted.tolist()
    assert call().rows == 206
    make(folder / f"2025-01-02b{suffix}", 1, 10)  # between
    with pytest.raises(ValueError, match=r"goes back from|begun from another source"):
        call()
    (folder / f"2025-01-02b{suffix}").rename(tmp_path / "away")
    shutil.move(folder / f"2025-01-01{suffix}", tmp_path / "first")
    with pytest.raises(SourceChangedError, match="Files may be added after those"):
        call()


def test_arrays_of_days_grow_too_and_a_stopped_call_goes_on(tmp_path: Path) -> None:
    folder = tmp_path / "days"
    folder.mkdir()
    for day in range(3):
        (folder / str(day)).mkdir()
        np.save(folder / str(day) / "ob.npy", book(300, day))

        def stop(done: int, _: int) -> None:
            if done > 300 * 120 * day + 10_000:  # noqa: B023
                raise KeyboardInterrupt

        if day:
            with pytest.raises(KeyboardInterrupt):
                migrate(folder, tmp_path / "d", into="dataset", slab_bytes=1 << 14, progress=stop, **FREE)
        migrate(folder, tmp_path / "d", into="dataset", slab_bytes=1 << 14, **FREE)
        with cdd.dataset.open(tmp_path / "d") as ds:
            assert same(ds["ob"][:], np.concatenate([book(300, n) for n in range(day + 1)]))
    for name in ("a", "b"):
        np.save(tmp_path / f"{name}.npy", book(30))
        if name == "b":
            with pytest.raises(SourceChangedError, match="has the columns a, its source has values now"):
                migrate(tmp_path, tmp_path / "e", into="dataset", glob="?.npy", **FREE)
        else:
            migrate(tmp_path, tmp_path / "e", into="dataset", glob="?.npy", **FREE)


def test_times_that_go_back_within_a_file_name_it(tmp_path: Path) -> None:
    for day in (1, 2):
        at = times(day)
        if day == 2:
            at[40] = at[3]
        pq.write_table(pa.table({"time": at}), tmp_path / f"{day}.parquet")
    with pytest.raises(
        cdd.dataset.OrderError, match=r"goes back in row 40 of the append.*2\.parquet, row 0 on"
    ):
        migrate(tmp_path, tmp_path / "d", into="dataset", clock="time", glob="*.parquet", **FREE)


def test_a_wrong_clock_is_said_at_once_and_shortly(tmp_path: Path) -> None:
    columns = {f"c{number:03}": np.arange(3) / 7 for number in range(150)}
    pq.write_table(pa.table(columns), tmp_path / "s.parquet")
    for options in ({"dry_run": True}, {}):
        for clock, wanted in (
            ("time", "clock is 'time': .*c009 and 140 more$"),
            ("c001", "'c001' is the clock"),
        ):
            call: dict[str, Any] = {"into": "dataset", "clock": clock, **FREE, **options}
            if options:
                assert wanted[:12] in str(migrate(tmp_path / "s.parquet", tmp_path / "d", **call).failed)
            else:
                with pytest.raises(ValueError, match=wanted):
                    migrate(tmp_path / "s.parquet", tmp_path / "d", **call)
            assert not (tmp_path / "d").exists()
    for target, path in (("t.cdd", None), ("t", "z")):
        with pytest.raises(ValueError, match="c009 and 140 more") as caught:
            migrate(tmp_path / "s.parquet", tmp_path / target, path=path, **FREE)
        assert len(str(caught.value)) < 500


# ------------------------------------------------------------ targets within the source


def test_what_any_run_wrote_within_a_source_is_no_source(tmp_path: Path) -> None:
    days = tmp_path / "days"
    days.mkdir()
    for day in range(3):
        table(days / f"{day}.parquet", day)
    np.save(days / "one.npy", book(20))
    cdd.save(days / "mine.cdd", np.arange(4))
    assert migrate(days, days / "out", **FREE).sources == 5
    migrate(days / "one.npy", days / "one-alone.cdd", **FREE)
    migrate(days, days / "deep/set", into="dataset", glob="*.parquet", **FREE)
    table(days / "2.parquet", 2, 60)  # what was made of it is no source all the same
    report = migrate(days, tmp_path / "elsewhere", **FREE)
    assert (report.sources, report.failed) == (5, {})
    (tmp_path / "away").mkdir()
    group(tmp_path / "away/g.zarr", 1)
    (days / "link.zarr").symlink_to(tmp_path / "away/g.zarr")
    (tmp_path / "other name").symlink_to(days)
    migrate(days / "link.zarr", days / "of-link", into="dataset", **FREE)
    migrate(tmp_path / "other name/one.npy", days / "of-name.cdd", **FREE)
    report = migrate(days, tmp_path / "elsewhere", **FREE)
    assert (report.sources, report.failed) == (7, {})
    (days / "link.zarr").unlink()
    shutil.rmtree(days / "of-link")
    (days / "of-name.cdd").unlink()
    days.rename(tmp_path / "moved")
    assert migrate(tmp_path / "moved", tmp_path / "moved/out2", **FREE).sources == 5
    # Stores are sources where they are asked for.
    assert migrate(tmp_path / "elsewhere", tmp_path / "dense", profile="dense", **FREE).sources == 10
    with cdd.dataset.open(tmp_path / "own", "w") as ds:
        ds.append(x=np.arange(3))
    with pytest.raises(ValueError, match="own is a dataset: what is migrated are"):
        migrate(tmp_path / "own", tmp_path / "t", **FREE)
    (tmp_path / "own").rename(tmp_path / "elsewhere/own")
    report = migrate(tmp_path / "elsewhere", tmp_path / "dense", profile="dense", **FREE)
    assert report.sources == 10 and [Path(name).name for name in report.failed] == ["own"]


# ------------------------------------------------------------ what there is to do


def test_a_dry_run_names_sources_and_targets_and_what_is_done(tmp_path: Path) -> None:
    for name in "ab":
        np.save(tmp_path / f"{name}.npy", book(10, ord(name)))

    def look() -> Any:
        return migrate(tmp_path, tmp_path / "t", glob="*.npy", dry_run=True, **FREE)

    report = look()
    told = [(Path(p.source).name, Path(p.target).name, p.rows, p.rows_there, p.is_done) for p in report.plan]
    assert told == [("a.npy", "a.cdd", 10, None, False), ("b.npy", "b.cdd", 10, None, False)]
    assert (
        str(report)
        .splitlines()[0]
        .endswith("a.npy -> " + f"{tmp_path / 't/a.cdd'}: 10 rows, 1,200 bytes: new")
    )
    assert str(report).splitlines()[-1] == "2 sources, 20 rows, 2,400 bytes: 2 to do, 0 done before"
    migrate(tmp_path, tmp_path / "t", glob="*.npy", **FREE)
    np.save(tmp_path / "c.npy", book(10, 5))
    report = look()
    assert [planned.is_done for planned in report.plan] == [True, True, False] and report.resumed == 2
    assert str(report).splitlines()[-1].endswith("1 to do, 2 done before")
    np.save(tmp_path / "a.npy", book(11))
    assert "changed since it was migrated" in look().failed[str(tmp_path / "a.npy")]
    cdd.save(tmp_path / "mine.cdd", np.arange(3))
    report = migrate(tmp_path / "b.npy", tmp_path / "mine.cdd", dry_run=True, **FREE)
    assert "FileExistsError" in str(report.failed) and cdd.load(tmp_path / "mine.cdd").tolist() == [0, 1, 2]
    run = [
        sys.executable,
        "-P",
        "-m",
        "cdd",
        "migrate",
        str(tmp_path),
        str(tmp_path / "t"),
        "--glob",
        "*.npy",
    ]
    done = subprocess.run([*run, "--dry-run"], capture_output=True, text=True)
    assert "b.cdd: 10 rows, 1,200 bytes: done\n" in done.stdout and done.returncode == 1
    done = subprocess.run([*run, "--dry-run", "--json"], capture_output=True, text=True)
    assert json.loads(done.stdout)["plan"][0]["target"] == str(tmp_path / "t/b.cdd")


def test_a_dry_run_tells_of_what_is_begun_and_what_is_missing(tmp_path: Path) -> None:
    np.save(tmp_path / "a.npy", book(300))

    def stop(done: int, _: int) -> None:
        if done > 10_000:
            raise KeyboardInterrupt

    for options in ({}, {"into": "dataset"}):
        target = tmp_path / ("d" if options else "a.cdd")
        with pytest.raises(KeyboardInterrupt):
            migrate(tmp_path / "a.npy", target, slab_bytes=1 << 12, progress=stop, **options, **FREE)  # type: ignore[arg-type]
        (planned,) = migrate(tmp_path / "a.npy", target, dry_run=True, **options, **FREE).plan or ()  # type: ignore[arg-type]
        assert planned.rows_there is not None and 0 <= planned.rows_there < 300
        assert f"goes on after row {planned.rows_there}" in str(planned)
    group(tmp_path / "g.zarr", 1)
    (tmp_path / "g.zarr/ob/c/1/0/0").unlink()
    report = migrate(tmp_path / "g.zarr", tmp_path / "t", dry_run=True, **FREE)
    assert report.sources == 1 and "MissingChunksError: " in report.failed[f"{tmp_path / 'g.zarr'}::ob"]
    with pytest.raises(MissingChunksError):
        migrate(tmp_path / "g.zarr", tmp_path / "d2", into="dataset", **FREE)


# ------------------------------------------------------------ what is said


def test_zarr_that_lost_its_metadata_is_not_left_out(tmp_path: Path) -> None:
    folder = tmp_path / "s"
    folder.mkdir()
    group(folder / "good.zarr", 1)
    (folder / "empty.zarr").mkdir()
    group(folder / "lost.zarr", 2)
    (folder / "lost.zarr/zarr.json").unlink()
    for name in ("ob", "time"):
        (folder / f"lost.zarr/{name}/zarr.json").unlink()
    for glob in (None, "*.zarr"):
        report = migrate(folder, tmp_path / "t", glob=glob, **FREE)
        assert report.sources == 2
        assert sorted(Path(name).name for name in report.failed) == ["empty.zarr", "lost.zarr"]
        assert "it has no zarr.json" in str(report)
    for target in ("t.cdd", "u"):
        with pytest.raises(UnreadableError, match=r"empty\.zarr is no zarr"):
            migrate(folder / "empty.zarr", tmp_path / target, **FREE)
    (folder / "good.zarr/ob/zarr.json").unlink()
    with pytest.raises(UnreadableError, match=r"ob.* is in the zarr group .*good.zarr and has files"):
        migrate(folder / "good.zarr", tmp_path / "u", **FREE)


def test_a_chunk_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    h5py = pytest.importorskip("h5py")
    group(tmp_path / "g.zarr", 1)
    (tmp_path / "g.zarr/ob/c/1/0/0").write_bytes(b"nonsense")
    with pytest.raises(UnreadableError, match=r"g\.zarr::ob, chunk c/1/0/0, cannot be read: "):
        migrate(f"{tmp_path / 'g.zarr'}::ob", tmp_path / "t.cdd", **FREE)
    with h5py.File(tmp_path / "a.h5", "w") as file:
        made = file.create_dataset("x", data=book(400), chunks=(100, 10, 3), compression="gzip")
        where = made.id.get_chunk_info(2)
    with (tmp_path / "a.h5").open("r+b") as raw:
        raw.seek(where.byte_offset + 5)
        raw.write(bytes(200))
    with pytest.raises(UnreadableError, match=r"a\.h5::x, rows 200 to 300, cannot be read: OSError"):
        migrate(tmp_path / "a.h5", tmp_path / "u.cdd", **FREE)


@pytest.mark.parametrize("verify", [True, False])
def test_another_array_of_the_same_shape_is_another_source(verify: bool, tmp_path: Path) -> None:
    one, other = book(50, 1), book(50, 2)
    migrate(one, tmp_path / "t.cdd", verify=verify, **FREE)
    with pytest.raises(SourceChangedError, match="begun from another source"):
        migrate(other, tmp_path / "t.cdd", verify=verify, **FREE)
    assert migrate(one.copy(), tmp_path / "t.cdd", verify=verify, **FREE).resumed in (0, 1)
    near = one.copy()
    near[7, 0, 0] += 1  # in a row of which nothing is known
    with pytest.raises(SourceChangedError, match="row 7, which an earlier call wrote, is another now"):
        migrate(near, tmp_path / "t.cdd", **FREE)
    assert same(cdd.load(tmp_path / "t.cdd"), one)


def test_an_error_of_progress_is_no_sources(tmp_path: Path) -> None:
    for name in "ab":
        np.save(tmp_path / f"{name}.npy", book(10))

    def fails(*_: int) -> None:
        raise ZeroDivisionError("mine")

    for workers in (1, 2):
        for source in (tmp_path, tmp_path / "a.npy"):
            with pytest.raises(ZeroDivisionError, match="mine"):
                migrate(source, tmp_path / f"{source.stem}{workers}", workers=workers, progress=fails, **FREE)
