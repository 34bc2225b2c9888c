"""What mode "w" replaces, what it leaves, and that nothing is lost where it fails."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from cdd import tiles
from tests.tiles.conftest import camera, writer_options


def test_what_is_there_is_not_replaced_by_mistake(tmp_path: Path) -> None:
    path = tmp_path / "a.zarr"
    with pytest.raises(FileNotFoundError):
        tiles.open(path, "a")
    with pytest.raises(FileNotFoundError):
        tiles.open(path)
    with tiles.open(path, "x", **writer_options()) as w:
        w.append(camera(5, 40, 50))
    with pytest.raises(FileExistsError):
        tiles.open(path, "x", **writer_options())
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "diary.txt").write_text("dear")
    with pytest.raises(FileExistsError, match="other things"):
        tiles.open(tmp_path / "other", "w", **writer_options())
    assert (tmp_path / "other" / "diary.txt").read_text() == "dear"
    with tiles.open(path, "w", **writer_options()) as w:
        w.append(camera(1, 40, 50))
    with tiles.open(path) as r:
        assert r.shape == (1, 40, 50)
    assert not (path / ".cdd-journal").exists()


@pytest.mark.parametrize("scales", [1, 2])
@pytest.mark.parametrize(
    "stray",
    ["notes.txt", "sub/a.tif", "c/notes.txt", "0/notes.txt", "c/0/0/0/more", "2024/11/30", "1.2.3", "c/0/7"],
)
def test_files_of_others_within_an_array_are_kept(tmp_path: Path, scales: int, stray: str) -> None:
    path = tmp_path / "a.zarr"
    options: dict[str, Any] = writer_options() | (
        {"scales": 2, "dimension_names": "tyx"} if scales == 2 else {}
    )
    with tiles.open(path, "w", **options) as w:
        w.append(camera(5, 40, 50))
    place = path / stray
    if place.parent.is_file():
        place = place.parent.with_name("more")
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_text("dear")
    before = everything_in(path)
    with pytest.raises(FileExistsError, match="nothing of an array's"):
        tiles.open(path, "w", **options)
    assert everything_in(path) == before
    place.unlink()
    for folder in place.parents:
        if folder == path or any(folder.iterdir()):
            break
        folder.rmdir()
    tiles.open(path, "w", **options).close()


@pytest.mark.parametrize("scales", [1, 2])
def test_what_a_killed_writer_was_about_to_put_there_is_no_strangers(tmp_path: Path, scales: int) -> None:
    path = tmp_path / "a.zarr"
    options: dict[str, Any] = writer_options() | (
        {"scales": 2, "dimension_names": "tyx"} if scales == 2 else {}
    )
    with tiles.open(path, "w", **options) as w:
        w.append(camera(5, 40, 50))
    shard = next(p for p in sorted((path / "1" if scales == 2 else path).glob("c/**/*")) if p.is_file())
    for place in (shard, path / "zarr.json"):
        place.with_name(f".{place.name}.a5fb65de926d5302.tmp").write_bytes(b"half")
    for ending in ("growing", "copying"):
        shard.with_name(f".{shard.name}.{ending}").write_bytes(b"half")
        shard.with_name(f"..{shard.name}.{ending}.a5fb65de926d5302.tmp").write_bytes(b"half")
    tiles.open(path, "w", **options).close()
    assert not list(path.rglob(".*.*"))


@pytest.mark.parametrize("scales", [1, 2])
def test_links_and_folders_of_others_are_kept(tmp_path: Path, scales: int) -> None:
    path, elsewhere = tmp_path / "a.zarr", tmp_path / "elsewhere"
    options: dict[str, Any] = writer_options() | (
        {"scales": 2, "dimension_names": "tyx"} if scales == 2 else {}
    )
    elsewhere.mkdir()
    (elsewhere / "notes.txt").write_text("dear")
    with tiles.open(path, "w", **options) as w:
        w.append(camera(5, 40, 50))
    for place in (path / "mylink", path / ("1/c/7" if scales == 2 else "c/7")):
        place.symlink_to(elsewhere)
        with pytest.raises(FileExistsError, match=place.name):
            tiles.open(path, "w", **options)
        place.unlink()
    (path / "empty").mkdir()
    with pytest.raises(FileExistsError, match="empty"):
        tiles.open(path, "w", **options)
    (path / "empty").rmdir()
    link = tmp_path / "link.zarr"
    link.symlink_to(path)
    tiles.open(link, "w", **options).close()
    assert link.is_symlink() and tiles.open(path).shape == (0, 40, 50)
    assert (elsewhere / "notes.txt").read_text() == "dear"


def test_a_group_that_is_no_pyramid_is_kept(tmp_path: Path) -> None:
    path = tmp_path / "a.zarr"
    tiles.open(path / "first", "w", **writer_options()).close()
    group = {"zarr_format": 3, "node_type": "group", "attributes": {"by": "somebody"}}
    (path / "zarr.json").write_text(json.dumps(group))
    before = everything_in(path)
    with pytest.raises(FileExistsError, match="a zarr group and no pyramid"):
        tiles.open(path, "w", **writer_options())
    assert everything_in(path) == before


@pytest.mark.parametrize("keys", [{}, {"name": "default", "separator": "."}, {"name": "v2", "separator": "."},
                                  {"name": "v2", "separator": "/"}])  # fmt: skip
def test_arrays_of_others_are_replaced(tmp_path: Path, keys: dict[str, str]) -> None:
    zarr = pytest.importorskip("zarr")
    path = tmp_path / "a.zarr"
    options = {"chunk_key_encoding": keys} if keys else {}
    zarr.create_array(str(path), shape=(4, 5), chunks=(2, 2), dtype="u2", **options)[...] = 7
    tiles.open(path, "w", **writer_options()).close()
    assert tiles.open(path).shape == (0, 40, 50)


def everything_in(folder: Path) -> dict[str, bytes]:
    return {str(p.relative_to(folder)): p.read_bytes() for p in folder.rglob("*") if p.is_file()}


@pytest.mark.parametrize("scales", [1, 2])
def test_an_array_comes_back_where_its_replacement_fails(tmp_path: Path, scales: int) -> None:
    resource = pytest.importorskip("resource")
    path = tmp_path / "a.zarr"
    options: dict[str, Any] = writer_options()
    if scales == 2:
        options |= {"scales": 2, "dimension_names": "tyx"}
    with tiles.open(path, "w", **options) as w:
        w.append(camera(6, 40, 50))
    before = everything_in(path)
    with pytest.raises(ValueError) as told:
        tiles.bytes_needed(**options, memory_bytes=1)
    least = int(re.findall(r"\d+", str(told.value))[-1])
    for memory in (1, least - 300, least - 1):
        with pytest.raises(ValueError, match=f"needs at least {least}"):
            tiles.open(path, "w", **options, memory_bytes=memory)
        assert everything_in(path) == before
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, hard))  # no file may get a byte
    try:
        with pytest.raises(OSError):
            tiles.open(path, "w", **options)
        with pytest.raises(OSError):
            tiles.open(tmp_path / "b.zarr", "x", **options)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert everything_in(path) == before
    assert [p.name for p in tmp_path.iterdir()] == ["a.zarr"]
    tiles.open(path, "w", **options).close()
    assert [p.name for p in tmp_path.iterdir()] == ["a.zarr"]


def test_what_a_writer_that_was_killed_early_left_is_replaced(tmp_path: Path) -> None:
    path = tmp_path / "a.zarr"
    path.mkdir()
    (path / ".cdd-journal").write_bytes(b"")
    options: dict[str, Any] = writer_options()
    tiles.open(path, "w", **options).close()
    assert tiles.open(path).shape == (0, 40, 50)
