"""JSON files and plain zarr stores: what they promise; which paths are opened; members of every kind."""

import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import cdd
from cdd import logical
from tests.logical.files import BOOKS, of_file, with_member

try:
    import zarr
except ImportError:
    zarr = None

needs_zarr = pytest.mark.skipif(zarr is None, reason="zarr is not installed")

# ------------------------------------------------------------ JSON files


def test_a_json_file_needs_no_zarr(tmp_path: Path) -> None:
    array = of_file(tmp_path / "books.json", attrs={"unit": "usd"}, dims=("time", "level", "feature"))
    assert np.array_equal(array[:], BOOKS[:1000])
    assert (array.version, array.attrs, array.path) == (None, {"unit": "usd"}, str(tmp_path / "books.json"))
    with logical.transaction(tmp_path / "books.json") as t:
        assert t.names() == ["books"]
        t["books"].append(BOOKS[1000:1500])
        assert logical.open(tmp_path / "books.json").shape == (1000, 50, 3)
    assert array.refresh() is True
    assert np.array_equal(array[:], BOOKS[:1500])
    with pytest.raises(ZeroDivisionError), logical.transaction(tmp_path / "books.json") as t:
        t["books"].append(BOOKS[1500:])
        1 / 0  # noqa: B018
    assert array.refresh() is False
    assert logical.check(tmp_path / "books.json").orphans == []
    with logical.transaction(tmp_path / "books.json") as t:
        t["books"].replace(0, codec="cdd")
    assert np.array_equal(logical.open(tmp_path / "books.json")[:], BOOKS[:1500])
    assert len(logical.check(tmp_path / "books.json").orphans) == 1
    assert len(logical.prune(tmp_path / "books.json")) == 1
    assert logical.verify(tmp_path / "books.json").ok


def test_wrong_uses_of_a_json_file(tmp_path: Path) -> None:
    path = tmp_path / "books.json"
    with pytest.raises(FileNotFoundError, match="create=True"), logical.transaction(path):
        pass
    with pytest.raises(FileNotFoundError):
        logical.open(path)
    of_file(path)
    with logical.transaction(path) as t:
        with pytest.raises(logical.LogicalError, match="has the name 'books', not 'other'"):
            t.create("other", shape=(0,), dtype="f4")
        with pytest.raises(logical.LogicalError, match="not 'other'"):
            t["other"]
        with pytest.raises(logical.LogicalError, match="no zarr group"):
            t["books"].append(BOOKS[:5], codec={})
        with pytest.raises(TypeError, match="codec is None"):
            t["books"].append(BOOKS[:5], codec="zstd")
        with pytest.raises(ValueError, match=r"rows of shape \(n, 50, 3\)"):
            t["books"].append(BOOKS[:5, :49])
        with pytest.raises(TypeError, match="same_kind"):
            t["books"].append(BOOKS[:5].astype(complex))
        with pytest.raises(logical.ReadOnlyMemberError, match="of kind 'cdd'"):
            t["books"][0] = 5
    with pytest.raises(ValueError, match="branch"):
        logical.open(path, tag="v1")
    assert logical.names(path) == ["books"]
    assert logical.open(path, "books").name == "books"
    with pytest.raises(logical.LogicalError, match="holds the array 'books', not 'other'"):
        logical.open(path, "other")
    for text, error in (
        ("[]", "an object"),
        ("{}", "no field 'cdd:logical'"),
        ("", "no JSON"),
        ("\0" * 99, "no JSON"),
    ):
        path.write_text(text)
        with pytest.raises(logical.ManifestError, match=error):
            logical.open(path)


def test_a_manifest_too_large(tmp_path: Path) -> None:
    path = tmp_path / "large.json"
    with path.open("wb") as file:
        file.truncate(1 << 33)
    with pytest.raises(logical.ManifestError, match="16,777,216 are allowed"):
        logical.open(path)


# ------------------------------------------------------------ plain zarr stores


@needs_zarr
@pytest.mark.parametrize("kind", ["path", "group", "store", "inner group", "memory"])
def test_plain_zarr_stores(tmp_path: Path, kind: str) -> None:
    root = zarr.create_group(tmp_path / "s.zarr")
    where = {
        "path": tmp_path / "s.zarr",
        "group": root,
        "store": root.store,
        "inner group": root.create_group("inner"),
        "memory": zarr.storage.MemoryStore(),
    }[kind]
    with logical.transaction(where) as t:
        a = t.create("books", shape=(0, 50, 3), dtype="f4", grid=(500, 50, 3))
        a.append(BOOKS[:500], codec={"compressors": zarr.codecs.GzipCodec()})
        a.append(BOOKS[500:700], shards=(100, 50, 3), chunks=(50, 50, 3))
    array = logical.open(where)
    assert np.array_equal(array[:], BOOKS[:700])
    assert array.version is None
    with pytest.raises(ZeroDivisionError), logical.transaction(where) as t:
        a = t["books"]
        a.append(BOOKS[700:1500])
        1 / 0  # noqa: B018
    array = logical.open(where, "books")
    members = [name for name, _ in array._reading.places.group.arrays()]
    # What lengthened the last member is there, and no manifest shows it: the member is as the manifest says.
    assert len(members) == 2
    assert np.array_equal(logical.open(where, "books")[:], BOOKS[:700])
    with logical.transaction(where) as t:
        t["books"][0:3] = 1
        t["books"].replace(0, codec={"compressors": None})
    found = logical.open(where, "books")
    assert (found[0:3] == 1).all()
    assert np.array_equal(found[3:500], BOOKS[3:500])
    assert len(logical.check(where, "books").orphans) == 1
    assert len(logical.prune(where)) == 1
    assert logical.check(where, "books").orphans == []
    if kind == "path":
        with logical.transaction(where) as t:
            t["books"].replace(0, codec="cdd")
        assert np.array_equal(logical.open(where)[3:500], BOOKS[3:500])


def test_a_transaction_within_another_does_not_wait_for_itself(tmp_path: Path) -> None:
    of_file(tmp_path / "books.json")
    with logical.transaction(tmp_path / "books.json") as t:
        again = logical.transaction(tmp_path / "books.json")
        with pytest.raises(logical.LogicalError, match="wait for itself"), again:
            pass
        t["books"].append(BOOKS[1000:1100])
    assert logical.open(tmp_path / "books.json").shape == (1100, 50, 3)


@needs_zarr
def test_members_are_plain_zarr_arrays_for_others(tmp_path: Path) -> None:
    tensorstore = pytest.importorskip("tensorstore")
    with logical.transaction(zarr.create_group(tmp_path / "s.zarr")) as t:
        a = t.create("books", shape=(0, 50, 3), dtype="f4")
        a.append(BOOKS[:500], codec={"compressors": zarr.codecs.GzipCodec()})
        a.append(BOOKS[500:700], shards=(100, 50, 3), chunks=(50, 50, 3))
    for region in logical.open(tmp_path / "s.zarr").regions:
        path = tmp_path / "s.zarr" / "books" / region.member
        spec = {"driver": "zarr3", "kvstore": {"driver": "file", "path": str(path)}}
        found = tensorstore.open(spec).result().read().result()
        assert np.array_equal(found, BOOKS[region.lo[0] : region.hi[0]])


@needs_zarr
def test_what_a_killed_writer_had_begun(tmp_path: Path) -> None:
    with logical.transaction(zarr.create_group(tmp_path / "s.zarr")) as t:
        t.create("books", shape=(0, 50, 3), dtype="f4").append(BOOKS[:500])
    begun = tmp_path / "s.zarr" / "books" / "m0123456789abcdef"
    begun.mkdir()
    (begun / "zarr.0.partial").write_text("{")
    report = logical.check(tmp_path / "s.zarr")
    assert report.ok
    assert report.orphans == ["books/m0123456789abcdef"]
    assert logical.prune(tmp_path / "s.zarr") == ["books/m0123456789abcdef"]
    assert not begun.exists()
    assert np.array_equal(logical.open(tmp_path / "s.zarr")[:], BOOKS[:500])


@needs_zarr
def test_members_are_plain_zarr_arrays_for_zarrs(tmp_path: Path) -> None:
    pytest.importorskip("zarrs")
    with logical.transaction(zarr.create_group(tmp_path / "s.zarr")) as t:
        a = t.create("books", shape=(0, 50, 3), dtype="f4")
        a.append(BOOKS[:500], codec={"compressors": zarr.codecs.BloscCodec()})
        a.append(BOOKS[500:700], shards=(100, 50, 3), chunks=(50, 50, 3))
    with zarr.config.set({"codec_pipeline.path": "zarrs.ZarrsCodecPipeline"}):
        array = logical.open(tmp_path / "s.zarr")
        assert np.array_equal(array[:], BOOKS[:700])
        assert np.array_equal(array[490:510, 3:5], BOOKS[490:510, 3:5])


@needs_zarr
def test_each_chunk_is_read_once_and_untouched_members_not_at_all(tmp_path: Path) -> None:
    with logical.transaction(zarr.create_group(tmp_path / "s.zarr")) as t:
        a = t.create("books", shape=(0, 50, 3), dtype="f4")
        for start in range(0, 800, 200):
            a.append(BOOKS[start : start + 200], chunks=(30, 50, 2))
    asked: list[str] = []

    class Counting(zarr.storage.WrapperStore):
        async def get(self, key: str, *more: Any, **options: Any) -> Any:
            asked.append(key)
            return await super().get(key, *more, **options)

    store = Counting(zarr.storage.LocalStore(tmp_path / "s.zarr", read_only=True))
    array = logical.open(zarr.open_group(store, mode="r"), "books")
    names = [region.member for region in array.regions]
    assert not [key for key in asked if any(name in key for name in names)]
    for key, members, chunks in (
        (slice(10, 20), [0], 2),
        (slice(190, 215), [0, 1], 2 + 2),
        ((slice(None, None, 7), 3, 0), [0, 1, 2, 3], 4 * 7),
        ([5, 6, 401, 5, 200, 431], [0, 1, 2], 2 + 2 + 2 * 2),
        ((slice(600, 700), slice(None), 2), [3], 4),
    ):
        array = logical.open(zarr.open_group(store, mode="r"), "books")
        asked.clear()
        assert np.array_equal(array[key], BOOKS[:800][key])
        read = [name for name in asked if "/c/" in name]
        assert len(read) == len(set(read)) == chunks
        assert {name.split("/")[1] for name in asked} == {names[number] for number in members}
    asked.clear()
    array.read_windows([5, 3, 20, 250, 198], 8)
    read = [name for name in asked if "/c/" in name]
    assert len(read) == len(set(read))


# ------------------------------------------------------------ members


@needs_zarr
def test_every_kind_of_member(tmp_path: Path) -> None:
    cdd.save(tmp_path / "a.cdd", BOOKS[:200])
    outside = zarr.create_array(tmp_path / "b.zarr", shape=(300, 50, 3), chunks=(64, 50, 3), dtype="f4")
    outside[:] = BOOKS[200:500]
    old = zarr.create_array(
        tmp_path / "c.zarr", shape=(100, 50, 3), chunks=(7, 50, 2), dtype="f4", zarr_format=2, order="F"
    )
    old[:] = BOOKS[500:600]
    group = zarr.create_group(tmp_path / "s.zarr")
    inside = group.create_array("books/there", shape=(100, 50, 3), chunks=(10, 50, 3), dtype="f4")
    inside[:] = BOOKS[600:700]
    with logical.transaction(group, allow=[tmp_path]) as t:
        a = t.create("books", shape=(0, 50, 3), dtype="f4")
        a.append_member(tmp_path / "a.cdd", rows=150, start=50)
        a.append_member(tmp_path / "b.zarr", digest=True)
        a.append_member(old)
        a.append_member(group["books/there"], rows=60)
        a.append_member(cdd.open(tmp_path / "a.cdd"), rows=10)
        a.append_member(BOOKS[:7], name="mine")
        with pytest.raises(logical.MemberError, match="dtype float64"):
            a.append_member(BOOKS.astype(float), name="other")
        with pytest.raises(logical.MemberError, match="has shape"):
            a.append_member(BOOKS[:, :4], name="other")
        with pytest.raises(FileNotFoundError):
            a.append_member(tmp_path / "none.cdd")
        with pytest.raises(TypeError, match="name= says"):
            a.append_member(BOOKS)
        with pytest.raises(ValueError, match="rows is 301"):
            a.append_member(tmp_path / "b.zarr", rows=301)
    expected = np.concatenate([BOOKS[50:200], BOOKS[200:600], BOOKS[600:660], BOOKS[:10], BOOKS[:7]])
    array = logical.open(tmp_path / "s.zarr", allow=[tmp_path], members={"mine": BOOKS[:7]})
    assert np.array_equal(array[:], expected)
    kinds = [member.kind for member in array.manifest.members]
    assert kinds == ["cdd", "zarr-external", "zarr-external", "zarr", "cdd", "named"]
    assert [member.path for member in array.manifest.members][:3] == ["a.cdd", "b.zarr", "c.zarr"]
    report = logical.verify(tmp_path / "s.zarr", allow=[tmp_path], members={"mine": BOOKS[:7]})
    assert report.ok
    outside[3] = 1
    report = logical.verify(tmp_path / "s.zarr", allow=[tmp_path], members={"mine": BOOKS[:7]})
    assert [name for name, _ in report.problems] == [array.manifest.members[1].name]
    with pytest.raises(logical.MemberError, match="'mine'"):
        logical.open(tmp_path / "s.zarr", allow=[tmp_path])[:]
    with pytest.raises(logical.MemberError, match="has dtype float64"):
        logical.open(tmp_path / "s.zarr", allow=[tmp_path], members={"mine": BOOKS[:7].astype(float)})[-1]
    with pytest.raises(logical.MemberError, match=r"has shape \(5, 50, 3\)"):
        logical.open(tmp_path / "s.zarr", allow=[tmp_path], members={"mine": BOOKS[:5]})[-1]


def test_members_that_vanished_or_were_replaced(tmp_path: Path) -> None:
    of_file(tmp_path / "books.json")
    first, second = sorted(
        (tmp_path / "books.json.members").iterdir(), key=lambda path: path.stat().st_mtime_ns
    )
    data = first.read_bytes()
    array = logical.open(tmp_path / "books.json")
    first.unlink()
    with pytest.raises(logical.MemberError, match="no file"):
        array[:]
    assert np.array_equal(array[600:700], BOOKS[600:700])
    cdd.save(first, BOOKS[:500])
    with pytest.raises(logical.MemberError, match="another file came in its place"):
        logical.open(tmp_path / "books.json")[0]
    first.write_bytes(data[: len(data) // 2])
    with pytest.raises(cdd.CddError):
        logical.open(tmp_path / "books.json")[400]
    damaged = bytearray(data)
    damaged[len(data) // 3] ^= 1
    first.write_bytes(damaged)
    with pytest.raises(cdd.FormatError) as raised:
        logical.open(tmp_path / "books.json")[:500].sum()
    assert any(first.stem in note for note in raised.value.__notes__)
    assert not logical.verify(tmp_path / "books.json").ok
    assert second.exists()


# ------------------------------------------------------------ trust


def test_paths_of_strangers_are_not_opened(tmp_path: Path) -> None:
    mine, theirs = tmp_path / "mine", tmp_path / "theirs"
    mine.mkdir()
    theirs.mkdir()
    cdd.save(mine / "secret.cdd", BOOKS[:100])
    manifest = theirs / "m.json"
    for path in (str(mine / "secret.cdd"), "secret.cdd", "file://" + str(mine / "secret.cdd")):
        with_member(manifest, path)
        for allow in ((), [theirs], [mine / "deeper"], ["s3://bucket/"]):
            with pytest.raises(logical.MemberError, match="allow"):
                logical.open(manifest, allow=allow)[0]
        assert np.array_equal(logical.open(manifest, allow=[mine])[:], BOOKS[:100])
    assert np.array_equal(logical.open(manifest, allow=mine)[:], BOOKS[:100])
    if hasattr(os, "symlink"):  # links are followed before it is asked where they lead
        (theirs / "link.cdd").symlink_to(mine / "secret.cdd")
        with_member(manifest, "link.cdd")
        with pytest.raises(logical.MemberError, match=r"secret\.cdd"):
            logical.open(manifest, allow=[theirs])[0]
        assert np.array_equal(logical.open(manifest, allow=[theirs, mine])[:], BOOKS[:100])


def test_urls_of_strangers_are_not_opened(tmp_path: Path) -> None:
    pytest.importorskip("zarr")
    for url in ("s3://other/a", "s3://bucket-2/a", "s3://bucket/../a", "s3://bucket/%2e%2e/a"):
        member = {"name": "m", "kind": "zarr-external", "path": url, "shape": [100, 50, 3]}
        with_member(tmp_path / "m.json", "x", members=[member])
        with pytest.raises((logical.MemberError, logical.ManifestError), match=r"\.\.|allow"):
            logical.open(tmp_path / "m.json", allow=["s3://bucket"])[0]


def test_a_transaction_grants_what_it_names(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "place").mkdir()
    cdd.save(tmp_path / "data" / "a.cdd", BOOKS[:100])
    cdd.save(tmp_path / "place" / "b.cdd", BOOKS[100:200])
    path = tmp_path / "place" / "books.json"
    with logical.transaction(path, create=True) as t:
        a = t.create("books", shape=(0, 50, 3), dtype="f4")
        with pytest.raises(logical.MemberError, match="allow="):
            a.append_member(tmp_path / "data" / "a.cdd")
    with logical.transaction(path, allow=[tmp_path / "data"]) as t:
        a = t["books"]
        a.append_member(tmp_path / "data" / "a.cdd")
        a.append_member(tmp_path / "place" / "b.cdd")
        assert np.array_equal(a[:], BOOKS[:200])
    array = logical.open(path, allow=[tmp_path])
    assert [member.path for member in array.manifest.members] == [
        (tmp_path / "data" / "a.cdd").resolve().as_posix(), "b.cdd"]  # fmt: skip
    assert np.array_equal(array[:], BOOKS[:200])
    assert np.array_equal(logical.open(path, allow=[tmp_path / "place", tmp_path / "data"])[:], BOOKS[:200])
    with pytest.raises(logical.MemberError, match=rf"allow=\['{tmp_path / 'place'}'\] would open it"):
        logical.open(path, allow=[tmp_path / "data"])[100]


def test_relative_paths_are_of_the_manifest_s_folder_first(tmp_path: Path) -> None:
    for folder, first in (("place", 0), ("other", 100), ("moved", 0)):
        (tmp_path / folder).mkdir()
        cdd.save(tmp_path / folder / "a.cdd", BOOKS[first : first + 100])
    with_member(tmp_path / "place" / "m.json", "a.cdd")  # without an id, which would tell the two apart
    with_member(tmp_path / "m.json", "a.cdd")
    for allow in ([tmp_path / "other", tmp_path / "place"], [tmp_path / "other", tmp_path]):
        assert np.array_equal(logical.open(tmp_path / "place" / "m.json", allow=allow)[:], BOOKS[:100])
    assert np.array_equal(logical.open(tmp_path / "m.json", allow=[tmp_path / "moved"])[:], BOOKS[:100])


@needs_zarr
def test_what_a_killed_writer_left_beside_arrays_is_passed_over(tmp_path: Path) -> None:
    """zarr writes zarr.json under a temporary name first; its warning of such a file is no matter of ours."""
    zarr.create_group(tmp_path / "s.zarr")
    with logical.transaction(tmp_path / "s.zarr") as t:
        t.create("a", shape=(0, 3), dtype="i4", grid=(8, 3))
    for folder in ("s.zarr", "s.zarr/a"):
        (tmp_path / folder / "zarr.69f6b45888fc44cfa869a0cd603e09fd.partial").write_bytes(b"{")
    assert logical.open(tmp_path / "s.zarr").shape == (0, 3)
    assert logical.check(tmp_path / "s.zarr").ok
    assert logical.prune(tmp_path / "s.zarr") == []
