"""Columns of texts of many pieces and parts: what the csv module and Python make of the same fields."""

import csv
import io
import random

import numpy as np
import pytest

import cdd
import cdd.csv


def made(seed: int, rows: int) -> tuple[bytes, list[list[str]]]:
    """Text with every line end, blank lines, quotes, line ends within them, a few fields of 100 kB; and its
    fields."""
    picked = random.Random(seed)
    words = ["", "a", "bc", 'q"q', "x,y", "l\nf", "c\r\nr", "\u00e9\u00e9", "0123456789abcdefghij"]
    lines, fields = ["n,price,name,when,flag,note"], []
    for i in range(rows):
        note = "".join(picked.choices(words, k=picked.randrange(6)))
        if picked.randrange(3000) == 0:
            note = picked.choice(["z", 'y"', "w\n"]) * 50_000
        row = [
            str(picked.randrange(-(10 ** picked.randrange(1, 18)), 10 ** picked.randrange(1, 18))),
            "" if picked.randrange(40) == 0 else f"{picked.uniform(-1e5, 1e5):.{picked.randrange(1, 7)}f}",
            picked.choice(["buy", "sell", "", "BTC-USDT-SWAP"]),
            f"2024-0{1 + i % 9}-1{i % 10}T0{i % 10}:0{i % 6}:0{i % 7}.{i % 1000:03}Z",
            picked.choice(["true", "False"]),
            note,
        ]
        fields.append(row)
        quoted = [
            '"' + field.replace('"', '""') + '"'
            if picked.randrange(20) == 0 or any(c in field for c in ',"\r\n')
            else field
            for field in row
        ]
        lines.append(",".join(quoted) + picked.choice(["\n", "\n", "\r\n", "\r", "\n\n", "\r\n\r\n"]))
    text = lines[0] + "\n" + "".join(lines[1:])
    return text.rstrip("\r\n").encode() if seed % 2 else text.encode(), fields


@pytest.mark.parametrize("threads", [1, 2, 5])
@pytest.mark.parametrize("seed", [1, 2])
def test_every_field(seed: int, threads: int) -> None:
    text, fields = made(seed, 12_000)
    assert [row for row in csv.reader(io.StringIO(text.decode(), newline="")) if row][1:] == fields
    cdd.set_threads(threads)
    try:
        columns = cdd.csv.read(text)
    finally:
        cdd.set_threads(0)
    n, price, name, when, flag, note = (list(column) for column in zip(*fields, strict=True))
    assert columns.types == {
        "n": "int64", "price": "float64", "name": "text",
        "when": "datetime64[ns]", "flag": "bool", "note": "text",
    }  # fmt: skip
    assert columns["n"].tolist() == [int(x) for x in n]
    assert columns.nulls("price").tolist() == [x == "" for x in price]
    assert columns.filled("price", 0).tolist() == [float(x or 0) for x in price]
    assert list(columns["name"]) == name
    assert columns["when"].tolist() == np.array([x[:-1] for x in when], "datetime64[ns]").tolist()
    assert columns["flag"].tolist() == [x == "true" for x in flag]
    assert list(columns["note"]) == note
    # The last row is of another type: found over all rows.
    assert cdd.csv.read(text + b"\nx1,1.5,a,2024-01-01,true,b\n").types["n"] == "text"


def test_a_given_type_that_does_not_hold_says_where() -> None:
    text, fields = made(3, 9000)
    places = [i for i, row in enumerate(fields) if row[2] == "buy"]
    with pytest.raises(cdd.FormatError) as caught:
        cdd.csv.read(text, types={"name": "int64"}, strict=False)
    first = next(i for i, row in enumerate(fields) if row[2] != "")
    assert first <= places[0]
    assert (caught.value.row, caught.value.field) == (first + 1, 2)
    offset = caught.value.offset
    assert text[offset : offset + len(fields[first][2])].decode() == fields[first][2]


def test_texts_of_many_runs_are_joined() -> None:
    """More runs than are read at a time, some without a byte of text."""
    texts = ["t" * (i % 23) for i in range(50_000)]
    block = "".join(f"{i},{text},{i / 8}\n" for i, text in enumerate(texts))
    text = ("n,s,x\n" + block * 6 + "1,,2\n" * 400_000 + block).encode()
    expected = texts * 6 + [""] * 400_000 + texts
    try:
        for threads in (1, 2, 3):
            cdd.set_threads(threads)
            columns = cdd.csv.read(text)
            assert list(columns["s"]) == expected
            assert len(columns["x"]) == len(expected)
    finally:
        cdd.set_threads(0)
