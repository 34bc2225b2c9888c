"""Writers that are killed, and those that go on after them."""

import os
import random
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import cdd
from cdd import tiles
from tests.tiles.conftest import Readers, camera, writer_options

KILLS = int(os.environ.get("CDD_TILE_KILLS", "100"))
FRAMES, HEIGHT, WIDTH = 400, 40, 48

WRITER = """
import os, random, sys
import numpy as np
from cdd import tiles
path, durability, seed = sys.argv[1], sys.argv[2], int(sys.argv[3])
rng = random.Random(seed)
frame = lambda i: np.random.default_rng(i).poisson(50, (40, 48)).astype(np.uint16)
with tiles.open(path, "a", durability=durability) as w:
    os.write(1, b"r")
    for i in range(len(w), 400):
        w.append(frame(i))
        if rng.random() < 0.2:
            w.flush()
        p = w.progress()
        os.write(1, p.readable.to_bytes(4, "little"))
"""


def frame(number: int) -> np.ndarray[Any, Any]:
    return np.random.default_rng(number).poisson(50, (HEIGHT, WIDTH)).astype(np.uint16)


def options(index: str, durability: str) -> Any:
    return {
        "shape": (None, HEIGHT, WIDTH),
        "dtype": "uint16",
        "tile_shape": (4, 16, 24),
        "shard_shape": (16, 32, 48),
        "shard_index": index,
        "durability": durability,
    }


@pytest.mark.skipif(sys.platform == "win32", reason="kills by SIGKILL")
@pytest.mark.parametrize(
    "index,durability", [("start", "batch"), ("start", "none"), ("end", "batch"), ("end", "none")]
)
def test_kills_at_random_points(
    tmp_path: Path,
    readers: Readers,
    record_property: Callable[[str, object], None],
    index: str,
    durability: str,
) -> None:
    record_property("kills", KILLS // 4)
    rng = random.Random(f"{index} {durability}")
    expected = np.stack([frame(i) for i in range(FRAMES)])
    path = tmp_path / "a.zarr"
    have = FRAMES
    for kill in range(KILLS // 4):
        if have == FRAMES:
            tiles.open(path, "w", **options(index, durability)).close()
            have = 0
        process = subprocess.Popen(
            [sys.executable, "-P", "-c", WRITER, str(path), durability, str(kill)], stdout=subprocess.PIPE
        )
        assert process.stdout is not None
        process.stdout.read(1)
        time.sleep(rng.random() * 0.03)
        process.send_signal(signal.SIGKILL)
        process.wait()
        told = process.stdout.read()
        process.stdout.close()
        readable = int.from_bytes(told[len(told) // 4 * 4 - 4 :][:4], "little") if len(told) >= 4 else 0
        with tiles.open(path, "a", durability=durability) as w:
            count = len(w)
        assert count >= max(have, readable)
        have = count
        for name, read in readers.items() if kill % 5 == 0 else [("cdd", readers["cdd"])]:
            np.testing.assert_array_equal(read(path), expected[:have], err_msg=f"{name} after kill {kill}")


def _left(path: Path, frames: int, **changed: Any) -> None:
    """An array whose writer never came to close() it."""
    w = tiles.open(path, "w", **(options("start", "none") | changed))
    w.append(np.stack([frame(i) for i in range(frames)]))
    w.flush()
    w._core.give_up()
    assert (path / ".cdd-journal").exists()


@pytest.mark.parametrize("frames", [1, 3, 4, 5, 16, 17, 31, 32])
@pytest.mark.parametrize("index", ["start", "end"])
@pytest.mark.parametrize("closes", [True, False])
def test_going_on_at_any_frame(
    tmp_path: Path, readers: Readers, frames: int, index: str, closes: bool
) -> None:
    path = tmp_path / "a.zarr"
    _left(path, frames, shard_index=index)
    if closes:
        tiles.open(path, "a").close()
        assert not (path / ".cdd-journal").exists()
    with tiles.open(path, "a") as w:
        assert len(w) == frames
        assert w.shape == (frames, HEIGHT, WIDTH)
        w.append(np.stack([frame(i) for i in range(frames, frames + 7)]))
    expected = np.stack([frame(i) for i in range(frames + 7)])
    for name, read in readers.items():
        np.testing.assert_array_equal(read(path), expected, err_msg=name)


def test_a_bound_is_kept_by_the_journal_and_may_be_given(tmp_path: Path) -> None:
    path = tmp_path / "a.zarr"
    _left(path, 5, shape=(6, HEIGHT, WIDTH))
    w = tiles.open(path, "a")
    with pytest.raises(ValueError, match="room"):
        w.append(np.stack([frame(0)] * 2))
    w.close()
    with pytest.raises(ValueError, match="3 frames"):
        tiles.open(path, "a", shape=(3, HEIGHT, WIDTH))
    with tiles.open(path, "a", shape=(7, HEIGHT, WIDTH)) as w:
        w.append(np.stack([frame(5), frame(6)]))
        with pytest.raises(ValueError, match="room"):
            w.append(frame(0))


@pytest.mark.parametrize("index", ["start", "end"])
def test_every_byte_of_a_damaged_journal(tmp_path: Path, index: str) -> None:
    path, work = tmp_path / "a.zarr", tmp_path / "b.zarr"
    _left(path, 6, shard_index=index, durability="flush")
    whole = (path / ".cdd-journal").read_bytes()
    expected = np.stack([frame(i) for i in range(6)])
    right = 0
    for at in range(0, len(whole), 7):
        shutil.rmtree(work, ignore_errors=True)
        shutil.copytree(path, work)
        (work / ".cdd-journal").write_bytes(whole[:at] + bytes([whole[at] ^ 0x41]) + whole[at + 1 :])
        try:
            with tiles.open(work, "a") as w:
                count = len(w)
        except cdd.CddError:
            continue
        with tiles.open(work) as r:
            np.testing.assert_array_equal(r[...], expected)
        right += 1
        assert count == 6
    # With the index at the start, that alone names all that was flushed.
    assert right == len(range(0, len(whole), 7)) if index == "start" else right > 0


@pytest.mark.parametrize("cut", [0, 1, 63, 64, 65, 104, 150])
def test_a_journal_that_ends_early(tmp_path: Path, cut: int) -> None:
    path = tmp_path / "a.zarr"
    _left(path, 6)
    with (path / ".cdd-journal").open("r+b") as journal:
        journal.truncate(cut)
    with tiles.open(path, "a") as w:
        assert len(w) == 6
    with tiles.open(path) as r:
        np.testing.assert_array_equal(r[...], np.stack([frame(i) for i in range(6)]))


def test_bytes_that_never_reached_the_disk(tmp_path: Path) -> None:
    """After a power cut: records of tiles whose bytes are not there do not count."""
    path = tmp_path / "a.zarr"
    w = tiles.open(path, "w", **options("start", "none"))
    w.append(np.stack([frame(i) for i in range(4)]))
    w.flush()
    before = (path / "zarr.json").read_bytes(), (path / "c/0/0/0").read_bytes()
    w.append(np.stack([frame(i) for i in range(4, 8)]))
    w.flush()
    w._core.give_up()
    (path / "zarr.json").write_bytes(before[0])
    grown = (path / "c/0/0/0").read_bytes()
    (path / "c/0/0/0").write_bytes(before[1] + bytes(len(grown) - len(before[1])))
    with tiles.open(path, "a") as w:
        assert len(w) == 4
        w.append(np.stack([frame(i) for i in range(4, 8)]))
    with tiles.open(path) as r:
        np.testing.assert_array_equal(r[...], np.stack([frame(i) for i in range(8)]))


def test_a_journal_of_another_array_is_refused(tmp_path: Path) -> None:
    _left(tmp_path / "a.zarr", 5)
    _left(tmp_path / "b.zarr", 5, tile_shape=(2, 16, 24))
    shutil.copy(tmp_path / "a.zarr/.cdd-journal", tmp_path / "b.zarr/.cdd-journal")
    with pytest.raises(cdd.FormatError, match="another array"):
        tiles.open(tmp_path / "b.zarr", "a")


def test_arrays_of_others_are_gone_on_with(tmp_path: Path, readers: Readers) -> None:
    zarr = pytest.importorskip("zarr")
    frames = np.stack([frame(i) for i in range(9)])
    array = zarr.create_array(
        str(tmp_path / "a.zarr"),
        shape=(9, HEIGHT, WIDTH),
        dtype="uint16",
        chunks=(4, 16, 24),
        shards=(8, 32, 48),
    )
    array[...] = frames
    with tiles.open(tmp_path / "a.zarr", "a") as w:
        for some in np.split(frames, 3):
            w.append(some)
            w.flush()
            for name, read in readers.items():  # its indexes stand at the end of shards
                np.testing.assert_array_equal(read(tmp_path / "a.zarr")[:9], frames, err_msg=name)
    for name, read in readers.items():
        np.testing.assert_array_equal(read(tmp_path / "a.zarr"), [*frames, *frames], err_msg=name)


def test_a_shape_to_go_on_with_is_the_arrays(tmp_path: Path) -> None:
    path = tmp_path / "a.zarr"
    with tiles.open(path, "w", shape=(None, 40, 50), dtype="uint16") as w:
        w.append(camera(2, 40, 50))
    for wrong in ((None, 40, 51), (None, 40), (None, 40, 50, 1)):
        with pytest.raises(ValueError, match=r"its frames are \(40, 50\)"):
            tiles.open(path, "a", shape=wrong)
    with tiles.open(path, "a", shape=(3, 40, 50)) as w:
        w.append(camera(1, 40, 50))
        with pytest.raises(ValueError, match="1 frames for an array of 3 frames, which has room for 0"):
            w.append(camera(1, 40, 50))


@pytest.mark.parametrize("frames", [2, 7, 8])
@pytest.mark.parametrize("kind", ["start", "end", "pyramid", "line"])
def test_what_a_killed_writer_was_about_to_put_there_goes(tmp_path: Path, kind: str, frames: int) -> None:
    path = tmp_path / "a.zarr"
    more: Any = {"shard_index": kind} if kind in ("start", "end") else {}
    if kind == "pyramid":
        more = {"scales": 2, "dimension_names": "tyx"}
    made: Any = {"dtype": "u2", "shape": (None,), "tile_shape": (4,), "shard_shape": (8,)}
    with tiles.open(path, "w", **(made if kind == "line" else writer_options(**more))) as w:
        w.append(np.ones(frames, "u2") if kind == "line" else camera(frames, 40, 50))
    temporary = "a5fb65de926d5302.tmp"
    left = [path / f".zarr.json.{temporary}"]
    for folder in (path / "0", path / "1") if kind == "pyramid" else (path,):
        shard = sorted(p for p in folder.glob("c/**/*") if p.is_file())[-1]
        names = (shard.name, f".{shard.name}.growing", f".{shard.name}.copying")
        left += [folder / f".zarr.json.{temporary}"]
        left += [shard.with_name(f".{name}.{temporary}") for name in names]
    for file in left:
        file.write_text("{")
    mine = shard.with_name(".notes.tmp")
    mine.write_text("dear")
    tiles.open(path, "a").close()
    assert [file for file in left if file.exists()] == []
    assert mine.read_text() == "dear"
