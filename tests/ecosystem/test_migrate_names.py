"""Which sources there are, and where each goes: names that a file made up, folders within folders, tables."""

import zipfile
from pathlib import Path

import numpy as np
import pytest

import cdd
import cdd.dataset
from cdd.migrate import migrate
from tests.ecosystem.formats import book, same

FREE = {"min_free": 0}


def test_names_of_arrays_stay_below_the_target(tmp_path: Path) -> None:
    names = ("../../up", "/etc/away", "a/../../b", "..\\..\\back")
    (tmp_path / "s").mkdir()
    made = zipfile.ZipFile(tmp_path / "s/n.npz", "w")
    for number, name in enumerate(names):
        info = zipfile.ZipInfo("x")
        info.filename = f"{name}.npy"  # the constructor would make it tame
        np.save(tmp_path / "one.npy", np.arange(number + 1))
        made.writestr(info, (tmp_path / "one.npy").read_bytes())
    made.close()
    for source, target in ((tmp_path / "s/n.npz", "deep/t"), (tmp_path / "s", "deep/u")):
        migrate(source, tmp_path / target, **FREE)
    stores = {p.relative_to(tmp_path).as_posix() for p in tmp_path.rglob("*.cdd")}
    wanted = {"up.cdd", "etc/away.cdd", "a/b.cdd", "back.cdd"}
    assert stores == {f"deep/t/{name}" for name in wanted} | {f"deep/u/n/{name}" for name in wanted}


def test_two_names_of_one_store_are_refused(tmp_path: Path) -> None:
    np.savez(tmp_path / "n.npz", **{"a/b": np.arange(3), "a/./b": np.arange(4)})
    with pytest.raises(ValueError, match=r"would both become .*a/b.cdd: choose by glob= or path="):
        migrate(tmp_path / "n.npz", tmp_path / "t", **FREE)


def test_what_an_earlier_run_wrote_is_no_source(tmp_path: Path) -> None:
    np.save(tmp_path / "a.npy", book(50))
    for _ in range(3):
        report = migrate(tmp_path, tmp_path / "stores", **FREE)
        assert report.sources == 1 and not report.failed
    assert [p.relative_to(tmp_path).as_posix() for p in tmp_path.rglob("*.cdd")] == ["stores/a.cdd"]
    with pytest.raises(ValueError, match="both source and target"):
        migrate(tmp_path, tmp_path, **FREE)


@pytest.mark.parametrize("dtype", [np.float32, "float32", "<f4", np.dtype("f4")])
def test_dtypes_of_raw_files(dtype: object, tmp_path: Path) -> None:
    array = book(40)
    array.tofile(tmp_path / "s.raw")
    migrate(tmp_path / "s.raw", tmp_path / "t.cdd", dtype=dtype, row_shape=[10, 3], workers=2, **FREE)  # type: ignore[arg-type]
    assert same(cdd.load(tmp_path / "t.cdd"), array)
    array.astype(">f4").tofile(tmp_path / "s.raw")
    migrate(tmp_path / "s.raw", tmp_path / "u.cdd", dtype=np.dtype(">f4"), row_shape=(10, 3), **FREE)
    assert same(cdd.load(tmp_path / "u.cdd"), array)


def test_tables_of_other_columns_do_not_follow_one_another(tmp_path: Path) -> None:
    pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    pq.write_table(pa.table({"bid": [1.0, 2.0]}), tmp_path / "1.parquet")
    pq.write_table(pa.table({"ask": [3.0, 4.0]}), tmp_path / "2.parquet")
    with pytest.raises(
        ValueError, match=r"column 'ask' is float64 of rows .* in .*2.parquet, and missing in"
    ):
        migrate(tmp_path, tmp_path / "d", into="dataset", glob="*.parquet", **FREE)
    pq.write_table(pa.table({"bid": [3.0, 4.0]}), tmp_path / "2.parquet")
    migrate(tmp_path, tmp_path / "d", into="dataset", glob="*.parquet", **FREE)
    with cdd.dataset.open(tmp_path / "d") as ds:
        assert ds["bid"][:].tolist() == [1, 2, 3, 4]


def test_a_report_counts_in_plain_english(tmp_path: Path) -> None:
    np.save(tmp_path / "a.npy", book(50))
    assert str(migrate(tmp_path / "a.npy", tmp_path / "t.cdd", **FREE)).startswith("1 source, 50 rows, ")
    np.save(tmp_path / "b.npy", book(50))
    report = migrate(tmp_path, tmp_path / "t", glob="*.npy", **FREE)
    assert str(report).startswith("2 sources, 100 rows, ")
