"""cdd.migrate when things go wrong, and with many files: sources that change, chunks that are missing, full
disks, workers that are killed. Nothing is lost, nothing is silently wrong.
"""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import cdd
import cdd.dataset
from cdd.migrate import MissingChunksError, SourceChangedError, migrate
from tests.ecosystem.formats import FORMATS, book, same

for library in ("zarr", "h5py", "pyarrow", "blosc2"):
    pytest.importorskip(library)

FREE = {"min_free": 0}
FILES = int(os.environ.get("CDD_MIGRATE_FILES", "80"))


@pytest.mark.parametrize("missing", ["c/3/0/0", "c/0/0/0"])
def test_missing_chunks_of_zarr(missing: str, tmp_path: Path) -> None:
    source = Path(FORMATS["zarr 3"](tmp_path, book()))
    (source / missing).unlink()
    with pytest.raises(MissingChunksError, match=f"1 chunks are not there: {missing}") as caught:
        migrate(source, tmp_path / "t.cdd", **FREE)
    assert caught.value.chunks == (missing,) and not (tmp_path / "t.cdd").exists()
    migrate(source, tmp_path / "t.cdd", missing="fill", **FREE)
    filled = book()
    first = int(missing.split("/")[1]) * 256
    filled[first : first + 256] = 0
    assert same(cdd.load(tmp_path / "t.cdd"), filled)


@pytest.mark.parametrize("name", ["npy", "zarr 2", "zarr 3", "hdf5", "parquet"])
def test_a_source_that_changed(name: str, tmp_path: Path) -> None:
    array = book()
    source = FORMATS[name](tmp_path, array)
    migrate(source, tmp_path / "t.cdd", **FREE)
    array[5] += 1
    FORMATS[name](tmp_path, array) if not name.startswith("zarr") else _change(source, array)
    before = (tmp_path / "t.cdd").read_bytes()
    with pytest.raises(SourceChangedError, match="before it changed"):
        migrate(source, tmp_path / "t.cdd", **FREE)
    assert (tmp_path / "t.cdd").read_bytes() == before


def _change(source: str, array: Any) -> None:
    import zarr

    zarr.open_array(source, mode="r+")[5] = array[5]


def test_a_source_that_changes_meanwhile(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from cdd.migrate.zarr_arrays import ZarrSource

    array = book()
    source = FORMATS["zarr 3"](tmp_path, array)
    read = ZarrSource.read

    def reading(self: ZarrSource, start: int, stop: int) -> Any:
        rows = read(self, start, stop)
        if start == 2816:
            (Path(source) / "c/0/0/0").touch()
        return rows

    monkeypatch.setattr(ZarrSource, "read", reading)
    with pytest.raises(SourceChangedError, match="changed while it was migrated"):
        migrate(source, tmp_path / "t.cdd", slab_bytes=1 << 15, delete_source=True, **FREE)
    assert Path(source).exists()


def test_what_was_not_migrated_stays(tmp_path: Path) -> None:
    source = FORMATS["npy"](tmp_path, book())
    cdd.save(tmp_path / "t.cdd", np.arange(5))
    with pytest.raises(FileExistsError, match="no migration made it"):
        migrate(source, tmp_path / "t.cdd", **FREE)
    assert same(cdd.load(tmp_path / "t.cdd"), np.arange(5))
    with cdd.dataset.open(tmp_path / "d", "w", clock=None) as writer:
        writer.append(a=np.arange(5))
    with pytest.raises(FileExistsError, match="no migration made it"):
        migrate(source, tmp_path / "d", into="dataset", **FREE)


def test_a_comparison_that_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from cdd.migrate import NotTheSameError
    from cdd.migrate.targets import Stores

    append = Stores.append

    def spoiled(self: Stores, start: int, rows: Any) -> None:
        append(self, start, {name: np.where(np.arange(len(a)) == 9, a + 1, a) for name, a in rows.items()})

    np.save(tmp_path / "s.npy", np.arange(1000))
    monkeypatch.setattr(Stores, "append", spoiled)
    with pytest.raises(NotTheSameError, match="row 9 was read back as other bytes"):
        migrate(tmp_path / "s.npy", tmp_path / "t.cdd", delete_source=True, **FREE)
    assert (tmp_path / "s.npy").exists()


def test_sources_are_removed_when_all_of_them_is_verified(tmp_path: Path) -> None:
    h5py = pytest.importorskip("h5py")
    folder = tmp_path / "s"
    folder.mkdir()
    with h5py.File(folder / "two.h5", "w") as file:
        file["a"], file["b"] = np.arange(3), np.arange(4)
    with h5py.File(folder / "bad.h5", "w") as file:
        file["a"], file["b"] = np.arange(3), ["text", "more"]
    FORMATS["zarr 3"](folder, book())
    with pytest.raises(ValueError, match="'a' is a part of"):
        migrate(f"{folder}/two.h5::a", tmp_path / "t.cdd", delete_source=True, **FREE)
    report = migrate(folder, tmp_path / "t", delete_source=True, **FREE)
    assert list(report.failed) == [f"{folder}/bad.h5::b"] and report.sources == 4
    assert sorted(path.name for path in folder.iterdir()) == ["bad.h5"]
    assert same(cdd.load(tmp_path / "t/two/b.cdd"), np.arange(4))


# ------------------------------------------------------------ many, several processes, limits


@pytest.mark.parametrize("workers", [1, 2])
def test_a_folder_of_many(workers: int, tmp_path: Path) -> None:
    folder = tmp_path / "s"
    arrays = {f"{i % 3}/{i:03}": book(20 + i, i) for i in range(30)}
    for name, array in arrays.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        np.save(folder / f"{name}.npy", array)
    (folder / "bad.npy").write_bytes(b"\x93NUMPY and no more")
    seen: list[tuple[int, int]] = []
    report = migrate(folder, tmp_path / "t", workers=workers, progress=lambda *at: seen.append(at), **FREE)
    assert report.sources == 30 and [Path(name).name for name in report.failed] == ["bad.npy"]
    assert all(same(cdd.load(tmp_path / f"t/{name}.cdd"), array) for name, array in arrays.items())
    assert seen[-1] == (report.raw_bytes, report.raw_bytes)
    lines = [json.loads(line) for line in (tmp_path / "t/migrate.jsonl").read_bytes().splitlines()]
    assert len(lines) == 30 and sum(line["rows"] for line in lines) == report.rows
    with (tmp_path / "t/migrate.jsonl").open("ab") as file:
        file.write(b'{"source": "cut off by a ki')
    np.save(folder / "new.npy", book(5))
    (folder / "bad.npy").unlink()
    again = migrate(folder, tmp_path / "t", workers=workers, **FREE)
    assert (again.sources, again.resumed, again.failed) == (31, 30, {})
    assert migrate(folder, tmp_path / "t", **FREE).resumed == 31
    np.save(folder / "new.npy", book(6))
    assert "changed since it was migrated" in str(migrate(folder, tmp_path / "t", **FREE).failed)


@pytest.mark.parametrize("name", ["zarr 3"])
def test_one_array_by_several_processes(name: str, tmp_path: Path) -> None:
    array = book(9000)
    source = FORMATS[name](tmp_path, array)
    migrate(source, tmp_path / "t.cdd", workers=2, slab_bytes=1 << 18, **FREE)
    assert same(cdd.load(tmp_path / "t.cdd"), array)


def test_files_of_days_become_one_dataset(tmp_path: Path) -> None:
    for day in range(5):
        np.save(tmp_path / f"2024-01-0{day + 1}.npy", book(50, day))
    migrate(tmp_path, tmp_path / "d", into="dataset", glob="*.npy", **FREE)
    with cdd.dataset.open(tmp_path / "d") as ds:
        assert same(ds["values"][:], np.concatenate([book(50, day) for day in range(5)]))


@pytest.mark.parametrize("name", ["hdf5", "npy", "zarr 3", "parquet", "npz, compressed"])
def test_more_files_than_can_be_open(name: str, tmp_path: Path) -> None:
    """CDD_MIGRATE_FILES of them, of which the system lets 50 be open."""
    resource = pytest.importorskip("resource")
    count = FILES if name == "npy" else 80
    folder = tmp_path / "s"
    for number in range(count):
        (folder / f"{number:05}").mkdir(parents=True)
        FORMATS[name](folder / f"{number:05}", book(3 + number % 5, number))
    path = {"hdf5": "deep/s", "parquet": "s"}.get(name)
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    others = sum(1 for _ in Path("/dev/fd").iterdir())  # what this process has open already
    resource.setrlimit(resource.RLIMIT_NOFILE, (others + 50, hard))
    try:
        migrate(folder, tmp_path / "d", into="dataset", path=path, **FREE)
        report = migrate(folder, tmp_path / "t", path=path, **FREE)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    assert report.sources == count and not report.failed
    wanted = [book(3 + number % 5, number) for number in range(count)]
    with cdd.dataset.open(tmp_path / "d") as ds:
        (column,) = ds.columns
        assert same(ds[column][:], np.concatenate(wanted))
    stores = sorted((tmp_path / "t").rglob("*.cdd"))
    assert len(stores) == count
    assert all(same(cdd.load(path), array) for path, array in zip(stores, wanted, strict=True))


@pytest.mark.parametrize("kind", ["npy", "zarr 3"])
def test_a_folder_that_cannot_be_listed_is_not_left_out(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("a", "b"):
        (tmp_path / "s" / name).mkdir(parents=True)
        FORMATS[kind](tmp_path / "s" / name, book())
    scandir = os.scandir

    def refused(path: str) -> Any:
        if os.fspath(path) == str(tmp_path / "s" / "b"):
            raise PermissionError(13, "Permission denied", path)
        return scandir(path)

    monkeypatch.setattr("os.scandir", refused)
    with pytest.raises(PermissionError):
        migrate(tmp_path / "s", tmp_path / "t", **FREE)
    assert not (tmp_path / "t").exists()


def test_a_disk_that_gets_full(tmp_path: Path) -> None:
    source = FORMATS["npy"](tmp_path, book())
    with pytest.raises(OSError, match="min_free= wants"):
        migrate(source, tmp_path / "t.cdd", min_free="99.99%")
    migrate(source, tmp_path / "t.cdd", **FREE)
    assert same(cdd.load(tmp_path / "t.cdd"), book())
    with pytest.raises(ValueError, match="min_free is bytes or a share"):
        migrate(source, tmp_path / "t.cdd", min_free="a lot")


@pytest.mark.skipif(sys.platform != "linux", reason="a limit on the size of files")
def test_a_write_that_fails_for_want_of_space(tmp_path: Path) -> None:
    import resource

    array = np.random.default_rng(5).integers(0, 1 << 62, (50_000, 4))
    np.save(tmp_path / "s.npy", array)
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    had = 0
    for size in (300_000, 700_000, 1_100_000):
        resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
        try:
            with pytest.raises(OSError):
                migrate(tmp_path / "s.npy", tmp_path / "t.cdd", slab_bytes=1 << 16, **FREE)
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        rows = len(cdd.load(tmp_path / "t.cdd"))
        assert rows > had and same(cdd.load(tmp_path / "t.cdd"), array[:rows])
        had = rows
    migrate(tmp_path / "s.npy", tmp_path / "t.cdd", slab_bytes=1 << 16, **FREE)
    assert same(cdd.load(tmp_path / "t.cdd"), array)


@pytest.mark.skipif(sys.platform != "linux", reason="peak memory as Linux tells it")
@pytest.mark.parametrize("name", ["zarr 3", "npz, compressed", "parquet"])
def test_memory_is_bounded(name: str, tmp_path: Path) -> None:
    source = FORMATS[name](tmp_path, np.repeat(book(1000), 400, axis=0))
    code = (
        "import re, sys\nfrom cdd.migrate import migrate\nimport zarr, pyarrow.parquet\n"
        # Not ru_maxrss: that begins with what the process had which started this one.
        "peak = lambda: int(re.search(r'VmHWM:\\s*(\\d+)', open('/proc/self/status').read())[1])\n"
        "before = peak()\n"
        "migrate(sys.argv[1], sys.argv[2], slab_bytes=4 << 20, min_free=0, verify=False)\n"
        "print(peak() - before)"
    )
    run = [sys.executable, "-P", "-c", code, source, str(tmp_path / "t.cdd")]
    done = subprocess.run(run, capture_output=True, text=True, check=True, env=os.environ)
    assert int(done.stdout) <= (4 * 4 << 10) + (200 << 10)


def test_dask_workers_take_files(tmp_path: Path) -> None:
    distributed = pytest.importorskip("distributed")
    folder = tmp_path / "s"
    folder.mkdir()
    for i in range(12):
        np.save(folder / f"{i:02}.npy", book(4000, i))
    (folder / "bad.npy").write_bytes(b"\x93NUMPY and no more")
    with (
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None
        ) as cluster,
        distributed.Client(cluster) as client,
    ):
        killed: list[int] = []

        def progress(done: int, _: int) -> None:
            if done and not killed:
                killed.append(client.run(os.getpid)[next(iter(client.run(os.getpid)))])
                os.kill(killed[0], 9)

        report = migrate(folder, tmp_path / "t", client=client, progress=progress, slab_bytes=1 << 16, **FREE)
    assert killed and report.sources == 12 and len(report.failed) == 1
    assert all(same(cdd.load(tmp_path / f"t/{i:02}.cdd"), book(4000, i)) for i in range(12))


def test_the_command(tmp_path: Path) -> None:
    def command(*words: object) -> subprocess.CompletedProcess[str]:
        run = [sys.executable, "-m", "cdd", "migrate", *map(str, words), "--min-free", "0"]
        return subprocess.run(run, capture_output=True, text=True, cwd=tmp_path)

    source = FORMATS["zarr 3"](tmp_path, book())
    looked = command(source, "t.cdd", "--dry-run", "--json")
    assert looked.returncode == 0, looked.stderr
    assert json.loads(looked.stdout)["rows"] == 3000 and not (tmp_path / "t.cdd").exists()
    done = command(source, "t.cdd", "--json")
    assert (done.returncode, done.stderr) == (0, "") and json.loads(done.stdout)["verified"]
    assert same(cdd.load(tmp_path / "t.cdd"), book())
    book().tofile(tmp_path / "s.raw")
    assert command("s.raw", "r.cdd", "--dtype", "float32", "--shape", "10,3").returncode == 0
    assert same(cdd.load(tmp_path / "r.cdd"), book())
    run = [sys.executable, "-m", "cdd", "migrate", source, "u.cdd", "--min-free", "99.99%"]
    full = subprocess.run(run, capture_output=True, text=True, cwd=tmp_path)
    assert full.returncode == 3 and "min_free= wants" in full.stderr
    np.savez(tmp_path / "day.npz", ob=book(), time=np.arange(3000))
    assert command("day.npz", "set", "--into", "dataset", "--clock", "time").returncode == 0
    with cdd.dataset.open(tmp_path / "set") as ds:
        assert ds.clock == "time" and same(ds["ob"][:], book())
    for wrong in (("--clock", "time"), ("--into", "dataset", "--profile", "dense")):
        refused = command("day.npz", "other", *wrong)
        assert refused.returncode == 2 and wrong[-2] in refused.stderr and not (tmp_path / "other").exists()
    failed = command("nothing.zarr", "u.cdd")
    assert failed.returncode == 1 and "nothing.zarr" in failed.stderr
