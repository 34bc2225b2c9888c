"""Virtual references: raw files as members, and arrays of references that others made."""

import os
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np
import pytest

from cdd import logical
from tests.logical.repositories import BOOKS, icechunk, zarr


@pytest.fixture
def raw(tmp_path: Path) -> Path:
    """A folder with a raw file and a .npy file."""
    folder = tmp_path / "raw"
    folder.mkdir()
    (folder / "a.bin").write_bytes(b"head" + BOOKS[:1001].tobytes())
    np.save(folder / "b.npy", BOOKS[1001:2000])
    return folder


def begin(tmp_path: Path, raw: Path) -> Path:
    where = tmp_path / "repo"
    with logical.transaction(where, create=True, allow=[raw]) as t:
        a = t.create("books", shape=(0, 50, 3), dtype="f4")
        a.append_virtual(raw / "a.bin", offset=4)
        a.append_virtual(raw / "b.npy", rows=998)
        a.append(BOOKS[1999:2100])
        assert np.array_equal(a[:1001], BOOKS[:1001])
        with pytest.raises(logical.ReadOnlyMemberError, match="is virtual"):
            a[0] = 1
    return where


def test_raw_files(tmp_path: Path, raw: Path) -> None:
    where = begin(tmp_path, raw)
    expected = np.concatenate([BOOKS[:1999], BOOKS[1999:2100]])
    array = logical.open(where, allow=[raw])
    assert np.array_equal(array[:], expected)
    assert logical.verify(where, allow=[raw]).ok
    array = logical.open(where)
    assert np.array_equal(array[1999:], BOOKS[1999:2100])
    with pytest.raises(icechunk.IcechunkError, match="virtual chunk"):
        array[0]
    with logical.transaction(where, allow=[raw]) as t:
        t["books"].replace(0)
    assert np.array_equal(logical.open(where, allow=[raw])[:1000], BOOKS[:1000])


def test_files_that_changed_or_vanished(tmp_path: Path, raw: Path) -> None:
    where = begin(tmp_path, raw)
    later = (raw / "a.bin").stat().st_mtime + 10
    os.utime(raw / "a.bin", (later, later))
    (raw / "b.npy").unlink()
    array = logical.open(where, allow=[raw])
    for row in (0, 1500):
        with pytest.raises((icechunk.IcechunkError, FileNotFoundError)) as raised:
            array[row]
        assert any("in member" in note for note in raised.value.__notes__)
    assert np.array_equal(array[1999:], BOOKS[1999:2100])
    report = logical.verify(where, allow=[raw])
    bad = [region.member for region in array.regions if region.hi[0] <= 1999]
    assert sorted({name for name, _ in report.problems}) == sorted(bad)


def test_wrong_files(tmp_path: Path, raw: Path) -> None:
    where = begin(tmp_path, raw)
    np.save(raw / "c.npy", BOOKS.astype(float))
    np.save(raw / "d.npy", np.asfortranarray(BOOKS))
    with logical.transaction(where, allow=[raw]) as t:
        a = t["books"]
        for name in ("c.npy", "d.npy"):
            with pytest.raises(logical.MemberError, match="in C order are wanted"):
                a.append_virtual(raw / name)
        with pytest.raises(ValueError, match="rows is 1002"):
            a.append_virtual(raw / "a.bin", rows=1002)
        with pytest.raises(FileNotFoundError):
            a.append_virtual(raw / "none")
        (tmp_path / "outside.bin").write_bytes(BOOKS[:5].tobytes())
        with pytest.raises(logical.MemberError, match="allow"):
            a.append_virtual(tmp_path / "outside.bin")
    with logical.transaction(zarr.create_group(tmp_path / "s.zarr")) as t:
        a = t.create("books", shape=(0, 50, 3), dtype="f4")
        with pytest.raises(logical.LogicalError, match="icechunk"):
            a.append_virtual(raw / "a.bin")


def test_references_that_others_made(tmp_path: Path, raw: Path) -> None:
    """An array of virtual chunks, written by icechunk alone as VirtualiZarr does it, is a member as it is."""
    storage = icechunk.local_filesystem_storage(str(tmp_path / "repo"))
    prefix = raw.resolve().as_uri() + "/"
    config = icechunk.RepositoryConfig.default()
    config.set_virtual_chunk_container(
        icechunk.VirtualChunkContainer(prefix, icechunk.local_filesystem_store(str(raw)))
    )
    repository = icechunk.Repository.create(storage, config=config)
    repository.save_config()
    session = repository.writable_session("main")
    group = zarr.create_group(session.store, path="books")
    group.create_array("theirs", shape=(1001, 50, 3), chunks=(77, 50, 3), dtype="f4", compressors=None)
    for number in range(13):
        session.store.set_virtual_ref(
            f"books/theirs/c/{number}/0/0", prefix + "a.bin", offset=4 + number * 77 * 600, length=77 * 600,
            checksum=datetime.now(UTC) + timedelta(seconds=2),
        )  # fmt: skip
    session.commit("references")
    with logical.transaction(tmp_path / "repo", allow=[raw]) as t:
        a = t.create("books", shape=(0, 50, 3), dtype="f4")
        a.append_member(a._reading.places.group["theirs"])
        assert a.manifest.members[0].read_only
        a.append(BOOKS[1001:1100])
    assert np.array_equal(logical.open(tmp_path / "repo", allow=[raw])[:], BOOKS[:1100])


def test_references_of_virtualizarr(tmp_path: Path, raw: Path) -> None:
    manifests = pytest.importorskip("virtualizarr.manifests")
    xarray = pytest.importorskip("xarray")
    from virtualizarr.manifests.utils import create_v3_array_metadata

    prefix = raw.resolve().as_uri() + "/"
    size = 77 * 600
    chunks = {  # their order counts: VirtualiZarr takes the entries as they come
        f"{number}.0.0": {"path": prefix + "a.bin", "offset": 4 + number * size, "length": size}
        for number in range(13)
    }
    array = manifests.ManifestArray(
        chunkmanifest=manifests.ChunkManifest(chunks),
        metadata=create_v3_array_metadata(
            shape=(1001, 50, 3),
            chunk_shape=(77, 50, 3),
            data_type=np.dtype("f4"),
            codecs=[{"name": "bytes", "configuration": {"endian": "little"}}],
        ),
    )
    config = icechunk.RepositoryConfig.default()
    folder = icechunk.local_filesystem_store(str(raw))
    config.set_virtual_chunk_container(icechunk.VirtualChunkContainer(prefix, folder))
    storage = icechunk.local_filesystem_storage(str(tmp_path / "repo"))
    repository = icechunk.Repository.create(storage, config=config)
    repository.save_config()
    session = repository.writable_session("main")
    xarray.Dataset({"theirs": (("t", "l", "f"), array)}).vz.to_icechunk(session.store, group="books")
    session.commit("references")
    with logical.transaction(tmp_path / "repo", allow=[raw]) as t:
        a = t.create("books", shape=(0, 50, 3), dtype="f4")
        a.append_member(a._reading.places.group["theirs"])
        assert a.manifest.members[0].read_only
    assert np.array_equal(logical.open(tmp_path / "repo", allow=[raw])[:], BOOKS[:1001])
