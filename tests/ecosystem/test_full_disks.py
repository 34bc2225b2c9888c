"""Disks of a few MB that get full under migrate, a sink, record and plot: what was written stays, the error
says why, and with room again the same call goes on. CDD_FULL_DISK_POINTS says at how many sizes.
"""

import errno
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from shutil import rmtree

import numpy as np
import pytest

import cdd
from cdd import dataset, feeds
from cdd.migrate import migrate
from tests.ecosystem.feeds_rig import check, received, sink
from tests.ecosystem.okx_stream import Exchange, replay
from tests.rig.small_disk import resize, small_disk

POINTS = int(os.environ.get("CDD_FULL_DISK_POINTS", "5"))
ROOM = 64 << 20


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    with small_disk(tmp_path / "disk", ROOM) as folder:
        yield folder


def noise(rows: int, seed: int = 0) -> np.ndarray:
    """Rows that do not shrink."""
    return np.random.default_rng(seed).integers(0, 1 << 62, (rows, 8))


@pytest.mark.parametrize("into", ["stores", "dataset"])
def test_migrate(into: str, disk: Path, tmp_path: Path) -> None:
    array = noise(60_000)
    np.save(tmp_path / "s.npy", array)
    target = disk / ("t.cdd" if into == "stores" else "t")
    for point in range(POINTS):
        had = 0
        for size in (500_000 + 4096 * 7 * point, 2 << 20):  # of 3.8 MB
            resize(disk, size)
            with pytest.raises(OSError) as caught:
                migrate(tmp_path / "s.npy", target, into=into, slab_bytes=1 << 16, min_free=0)  # type: ignore[arg-type]
            assert caught.value.errno == errno.ENOSPC
            if into == "stores":
                found = cdd.load(target)
                assert len(found) > had and np.array_equal(found, array[: len(found)])
                had = len(found)
        resize(disk, ROOM)
        report = migrate(
            tmp_path / "s.npy",
            target,
            into=into,
            slab_bytes=1 << 16,
            min_free=0,
            delete_source=point == POINTS - 1,
        )  # type: ignore[call-overload]
        assert report.resumed == 1 and report.verified
        if into == "stores":
            assert np.array_equal(cdd.load(target), array)
            target.unlink()
        else:
            with dataset.open(target) as ds:
                assert np.array_equal(ds["s"][:], array) and ds.verify().ok
            rmtree(target)
    assert not (tmp_path / "s.npy").exists()


def test_many_sources(disk: Path, tmp_path: Path) -> None:
    """A full disk ends all of them, and costs none."""
    (tmp_path / "s").mkdir()
    for number in range(8):
        np.save(tmp_path / f"s/{number}.npy", noise(8000, number))
    resize(disk, 2 << 20)  # four of eight
    for workers in (1, 2):
        with pytest.raises(OSError) as caught:
            migrate(tmp_path / "s", disk / "t", workers=workers, slab_bytes=1 << 16, min_free=0)
        assert caught.value.errno == errno.ENOSPC
    resize(disk, ROOM)
    report = migrate(tmp_path / "s", disk / "t", slab_bytes=1 << 16, min_free=0)
    assert report.sources == 8 and report.resumed >= 3 and not report.failed
    for number in range(8):
        assert np.array_equal(cdd.load(disk / f"t/{number}.cdd"), noise(8000, number))


def test_the_command_of_migrate(disk: Path, tmp_path: Path) -> None:
    np.save(tmp_path / "s.npy", noise(20_000))
    resize(disk, 1 << 19)
    command = [sys.executable, "-P", "-m", "cdd", "migrate", str(tmp_path / "s.npy"), str(disk / "t.cdd")]
    done = subprocess.run([*command, "--min-free", "0"], capture_output=True, text=True)
    assert done.returncode == 3 and "No space left" in done.stderr and "Traceback" not in done.stderr
    resize(disk, ROOM)
    assert subprocess.run([*command, "--min-free", "0"], capture_output=True).returncode == 0
    assert np.array_equal(cdd.load(disk / "t.cdd"), noise(20_000))


def test_a_sink(disk: Path) -> None:
    """Rows wait in memory while the disk is full, however often a flush tries."""
    messages = list(Exchange(seed=4).run(900))
    for point in range(POINTS):
        path = disk / str(point)
        used = sum(file.stat().st_blocks * 512 for file in disk.rglob("*"))
        with sink(path, roll="20s") as into:
            for number, message in enumerate(messages):
                into.put(message, received(message))
                if number == 100 + point:
                    resize(disk, used + (200_000 + 4096 * 11 * point))
                    filler = disk / "filler"
                    with pytest.raises(OSError), filler.open("wb", buffering=0) as file:
                        while True:
                            file.write(bytes(4096))
                if number % 50 == 49:
                    into.flush()
                if number == 700:
                    assert len(into) == 701
                    resize(disk, ROOM)
                    filler.unlink()
        check(path, replay(messages))


def test_record(disk: Path, caplog: pytest.LogCaptureFixture) -> None:
    pytest.importorskip("websockets")
    from tests.ecosystem.okx_server import Talk
    from tests.ecosystem.recording_rig import arrived, recorded_by

    resize(disk, 3 << 20)
    messages = list(Exchange(seed=5).run(600))

    async def script(talk: Talk) -> None:
        import asyncio

        await talk.subscribed()
        for number, message in enumerate(messages):
            await talk.send(message)
            await asyncio.sleep(0.003)
            if number == 50:
                with pytest.raises(OSError), (disk / "filler").open("wb", buffering=0) as file:
                    while True:
                        file.write(bytes(4096))
            if number == 500:
                (disk / "filler").unlink()
        await arrived(talk)

    report = recorded_by(script, disk / "books")
    assert report.rows == {"BTC-USDT": 600} and report.connections == 1
    assert any("rows wait in memory" in text for text in caplog.messages)
    assert any("rows are written again" in text for text in caplog.messages)
    with dataset.open(disk / "books/BTC-USDT") as ds:
        assert np.array_equal(ds["book"][:], replay(messages).array())
        assert feeds.sessions(ds).tolist() == [0]


def test_plot(disk: Path, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    book = np.zeros((200, 10, 2), np.float32)
    book[:, :, 0] = np.arange(95, 105)
    book[:, :, 1] = np.random.default_rng(1).integers(1, 99, (200, 10))
    cdd.save(tmp_path / "b.cdd", book)
    (disk / "b.png").write_bytes(b"what was there")
    resize(disk, 16 << 10)
    command = [sys.executable, "-P", "-m", "cdd", "plot", str(tmp_path / "b.cdd"), "-o", str(disk / "b.png")]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 1 and "No space left" in done.stderr and "Traceback" not in done.stderr
    assert [file.name for file in disk.iterdir()] == ["b.png"]
    assert (disk / "b.png").read_bytes() == b"what was there"
    resize(disk, ROOM)
    assert subprocess.run(command, capture_output=True).returncode == 0
    assert (disk / "b.png").read_bytes()[:4] == b"\x89PNG"
