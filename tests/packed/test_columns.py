"""Typed columns of CSV: values as Python's own int, float and datetime read them, types over all rows."""

import io
import random
from datetime import UTC, datetime
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import cdd
import cdd.csv
import cdd.packed.reading


def column(*fields: str, **options: object) -> object:
    text = "x,y\n" + "".join(f"{field},1\n" for field in fields)
    return cdd.csv.read(text.encode(), **options)["x"]


def kind(*fields: str) -> str:
    text = "x,y\n" + "".join(f"{field},1\n" for field in fields)
    return cdd.csv.read(text.encode()).types["x"]


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        (("1", "-2", "0"), "int64"),
        (("9223372036854775807", "-9223372036854775808"), "int64"),
        (("9223372036854775808", "1"), "uint64"),
        (("9223372036854775808", "-1"), "text"),  # whole numbers of both ends: no type has them
        (("1", "2.5", "-1e5", ".5", "1."), "float64"),
        (("true", "FALSE", "True"), "bool"),
        (("2024-02-29", "2024-02-29T12:00:00Z"), "datetime64[ns]"),
        (("2023-02-29",), "text"),
        (("1700-01-01", "1600-01-01"), "text"),  # int64 nanoseconds end in 1677
        (("", ""), "text"),
        (("", "1"), "int64"),
        (("007",), "text"),
        (("+1",), "text"),
        (("-0",), "float64"),
        (("nan", "1.0"), "text"),
        (("1.5", "inf"), "text"),
        (("12345678901234567890",), "text"),  # 20 digits: rather a name
        (("9007199254740993", "1.5"), "text"),  # not exact as float64
        (("9007199254740992", "1.5"), "float64"),
        (("1 ", "2"), "text"),
        (("0x10",), "text"),
        (("1_000",), "text"),
    ],
)
def test_types_that_are_found(fields: tuple[str, ...], expected: str) -> None:
    assert kind(*fields) == expected
    # One that decides may come late, in a block of its own.
    early = {"int64": "1", "uint64": "1", "float64": "1.5", "bool": "true"}.get(expected, "")
    assert kind(*[early] * 50_000, *fields, *[early] * 50_000) == expected


@given(st.lists(st.integers(-(2**63), 2**63 - 1), min_size=1))
def test_integers(numbers: list[int]) -> None:
    if all(len(str(abs(number))) <= 19 for number in numbers):
        assert column(*map(str, numbers)).tolist() == numbers


@given(st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=1))
def test_floats_are_exact(numbers: list[float]) -> None:
    for text in (repr, "{:.17g}".format, "{:.25e}".format, "{:f}".format):
        found = column(*map(text, numbers), types={"x": float})
        expected = np.array([float(text(number)) for number in numbers])
        assert found.view(np.int64).tolist() == expected.view(np.int64).tolist()


def test_decimals_are_exact() -> None:
    picked = random.Random(1)
    texts = [
        f"{picked.randrange(10 ** picked.randrange(1, 19))}.{picked.randrange(10**9)}" for _ in range(20_000)
    ]
    texts += ["1e400", "-1e400", "1e-400", "0." + "0" * 400 + "1", "1" * 400, "4.9e-324", "2.4e-324"]
    texts += ["1.7976931348623157e308", "8.5", "123456789012345678901234567890", "9007199254740993.0"]
    found = column(*texts, types={"x": "float64"})
    assert found.tolist() == [float(text) for text in texts]


@given(st.lists(st.datetimes(datetime(1678, 1, 1), datetime(2262, 1, 1)), min_size=1))
def test_times(times: list[datetime]) -> None:
    expected = [np.datetime64(time, "ns") for time in times]
    for text in (datetime.isoformat, str):
        found = column(*map(text, times), types={"x": "datetime64[ns]"})
        assert found.tolist() == [int(time.astype(np.int64)) for time in expected]
    zoned = [time.replace(tzinfo=UTC).isoformat().replace("+00:00", "Z") for time in times]
    assert column(*zoned, types={"x": "datetime64"}).tolist() == found.tolist()


def test_offsets_and_epochs() -> None:
    assert column("2024-01-01T01:00:00+01:00", "2023-12-31T23:30-00:30").tolist() == [1704067200 * 10**9] * 2
    for unit, scale in (("s", 10**9), ("ms", 10**6), ("us", 10**3), ("ns", 1)):
        found = column("1704067200", "-5", "1", types={"x": f"epoch[{unit}]"})
        assert found.dtype == "datetime64[ns]"
        assert found.astype(np.int64).tolist() == [1704067200 * scale, -5 * scale, scale]
    assert column("1.5", "-1.5", "0.000000001", types={"x": "epoch[s]"}).astype(int).tolist() == [
        1_500_000_000, -1_500_000_000, 1,
    ]  # fmt: skip
    for wrong in ("1.0000000001", "9223372037", "x"):
        with pytest.raises(cdd.FormatError, match="epoch"):
            column(wrong, types={"x": "epoch[s]"})


@pytest.mark.parametrize(
    ("text", "options", "place"),
    [
        (b"a,b\n1,x\n", {}, (1, 1, 6)),
        (b"a,b\n#\n1,2\n3,x\n", {"comment": "#"}, (2, 1, 12)),
        (b'a,b\n1,"x\n', {"strict": False}, (1, 1, 6)),
        (b"a,b\n1\n2,x\n", {"ragged": "skip"}, (1, 1, 8)),
        (b'a,b\n1,"""x"\n', {}, (1, 1, 7)),
        (b"a,b,c\n1,y,x\n", {"columns": [2]}, (1, 2, 10)),
    ],
)
def test_field_of_another_type_says_where(
    text: bytes, options: dict[str, Any], place: tuple[int, int, int]
) -> None:
    with pytest.raises(cdd.FormatError, match="no int64") as caught:
        cdd.csv.read(text, int, **options)
    assert (caught.value.row, caught.value.field, caught.value.offset) == place


def test_given_types_take_whatever_reads_as_one() -> None:
    assert column("007", "+1", types={"x": int}).tolist() == [7, 1]
    assert column("007", "1", types={"x": str})[0] == "007"
    assert np.isnan(column("nan", "+1.5", types={"x": float})[0])
    assert column("18446744073709551615", types={"x": "uint64"})[0] == 2**64 - 1
    with pytest.raises(cdd.FormatError, match=r'row 2, field 0 at 0x8: "1\.5" is no int64') as caught:
        column("1", "1.5", types={"x": "int64"})
    assert (caught.value.row, caught.value.field, caught.value.offset) == (2, 0, 8)
    for types in ({"z": int}, {7: int}):
        with pytest.raises(KeyError):
            column("1", types=types)
    for types in ({"x": "int7"}, ["int64"], "complex"):
        with pytest.raises(ValueError, match=r"types? "):
            column("1", types=types)


def test_nulls() -> None:
    c = cdd.csv.read(b"a,b,c\n1,,x\n,2.5,\n3,4.5,z\n")
    assert c.types == {"a": "int64", "b": "float64", "c": "text"}
    assert c["a"].tolist() == [1, None, 3]
    assert c.nulls("a").tolist() == [False, True, False]
    assert c.nulls("c").tolist() == [False] * 3
    assert list(c["c"]) == ["x", "", "z"]
    assert c.filled("b", -1).tolist() == [-1, 2.5, 4.5]
    with pytest.raises(ValueError, match="null"):
        c[0:2].to()
    assert c[2:]["b"].tolist() == [4.5]
    assert list(c[1:]["c"]) == ["", "z"]
    assert (len(c), c.names, "a" in c, "d" in c) == (3, ("a", "b", "c"), True, False)
    with pytest.raises(KeyError, match="a, b, c"):
        c["d"]
    assert cdd.csv.read(b"1,2\n3,4\n", header=False).to(np.float32).tolist() == [[1, 2], [3, 4]]


def test_nothing_but_a_header() -> None:
    for text, names in ((b"a,b\n", ("a", "b")), (b"a,b", ("a", "b")), (b"", ()), (b"\n\n", ())):
        c = cdd.csv.read(text)
        assert (c.names, len(c)) == (names, 0)
    assert list(cdd.csv.batches(b"a,b\n")) == []


def big(picked: random.Random, rows: int) -> bytes:
    lines = [b"n,x,s,late\n"]
    for i in range(rows):
        late = "1" if i < rows - 5 else "1.5"
        lines.append(f'{i},{picked.random()!r},"t ""{i % 7}""\n{i % 3}",{late}\n'.encode())
    return b"".join(lines)


def test_threads_and_batches_give_the_same(monkeypatch) -> None:
    text = big(random.Random(2), 60_000)
    cdd.set_threads(1)
    try:
        expected = cdd.csv.read(text)
        assert expected.types == {"n": "int64", "x": "float64", "s": "text", "late": "float64"}
        assert expected["n"].tolist() == list(range(60_000))
        for threads in (2, 3, 8):
            cdd.set_threads(threads)
            found = cdd.csv.read(text)
            for name in expected.names:
                assert list(found[name]) == list(expected[name])
    finally:
        cdd.set_threads(0)
    monkeypatch.setattr(cdd.packed.reading, "WINDOW_BYTES", 5000)
    for source in (text, io.BytesIO(text)):
        made = list(cdd.csv.batches(source, rows=1000))
        assert {tuple(batch.types.values()) for batch in made} == {("int64", "float64", "text", "float64")}
        assert sum(len(batch) for batch in made) == 60_000
        assert np.concatenate([batch["x"] for batch in made]).tolist() == expected["x"].tolist()
        assert [s for batch in made for s in batch["s"]] == list(expected["s"])

    class Pipe:
        """Gives little at a time and does not seek."""

        def __init__(self) -> None:
            self._file = io.BytesIO(text)

        def read(self, size: int) -> bytes:
            return self._file.read(min(size, 777))

    with pytest.raises(cdd.FormatError, match=r'"1\.5" is no int64') as caught:
        list(cdd.csv.batches(Pipe()))
    assert caught.value.row == 60_000 - 5 + 1
    made = list(cdd.csv.batches(Pipe(), types={"late": float}))
    assert sum(batch["late"].sum() for batch in made) == 60_000 + 2.5


@pytest.mark.parametrize("text", ["1e400", "-1e400", "0.1e310", "9" * 310 + ".0"])
def test_what_float64_does_not_reach(text: str) -> None:
    """Found, it is text as inf is; asked for, it is infinity, as float() has it."""
    source = f'a,b\n1.5,2\n{text},3\n"{text}",4\n'.encode()
    for header, rows in ((True, source), (False, source[4:])):
        name = "a" if header else "0"
        assert list(cdd.csv.read(rows, header=header)[name]) == ["1.5", text, text]
        given = cdd.csv.read(rows, {name: "float64"}, header=header)[name]
        assert given.tolist() == [1.5, float(text), float(text)]
