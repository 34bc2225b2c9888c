"""JSON read strictly: what is refused, with which place in the error."""

import json
from collections.abc import Callable
from typing import Any

import pytest

import cdd
from cdd.manifests import Field, ManifestError, parse, text_of


def read(text: str | bytes) -> Field:
    return parse(text, "m.json", 1000)


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ('{"a": 1, "a": 2}', "'a' comes twice"),
        ('{"a": {"b": 1, "b": 1}}', "'b' comes twice"),
        ("[NaN]", "NaN is not in JSON"),
        ("[-Infinity]", "-Infinity is not in JSON"),
        ("[1", "is no JSON"),
        (b"\xff\xfe\xfa", "is no JSON"),
        ("", "is no JSON"),
        ("[" * 900, "is no JSON"),
        ('"' + "x" * 1000, "is 1,001 bytes of JSON, 1,000 are allowed"),
    ],
)
def test_what_is_no_strict_json_is_refused(text: str | bytes, error: str) -> None:
    with pytest.raises(ManifestError, match=error) as raised:
        read(text)
    assert str(raised.value).startswith("m.json")


def test_depth_and_digits_are_bounded() -> None:
    for text in ("[" * 500_000, "[" * 500_000 + "]" * 500_000, "1" * 100_000):
        with pytest.raises(ManifestError):
            parse(text, "m.json", 1 << 20)


@pytest.mark.parametrize(
    ("value", "ask", "error"),
    [
        ({"a": 1}, lambda f: f.object(["b"]), "m.json has no field 'b'"),
        ({"a": 1, "c": 2}, lambda f: f.object(["a"], ["b"]), "m.json has the field 'c': only a, b are known"),
        (
            [{"a": True}],
            lambda f: f.items(1)[0].object(["a"])["a"].integer(0, 2),
            r"\[0\]\.a is true: an integer",
        ),
        (
            {"a": [1, 2.0]},
            lambda f: f.object(["a"])["a"].integers(2, 0, 9),
            r"a\[1\] is 2\.0: an integer from 0 to 9",
        ),
        ([1, 2, 3], lambda f: f.items(2), "m.json has 3 items: 0 to 2 are allowed"),
        ([1, 2, 3], lambda f: f.integers(2, 0, 9), "m.json has 3 items: 2 are allowed"),
        (7, lambda f: f.items(2), "m.json is 7: a list is wanted"),
        (7, lambda f: f.object([]), "m.json is 7: an object is wanted"),
        (None, lambda f: f.text(), "m.json is null: a text is wanted"),
        ("\ud800", lambda f: f.text(), "Unicode"),
        ("xx", lambda f: f.text(1), "at most 1 bytes"),
        (1, lambda f: f.flag(), "true or false"),
        ("c", lambda f: f.choice(["a", "b"]), 'm.json is "c": "a", "b" are allowed'),
        ({"version": 1}, lambda f: f.check_version(1), "m.json has no field 'min_reader'"),
        (
            {"version": 1, "min_reader": 2},
            lambda f: f.check_version(1),
            "min_reader is 2: it is above version",
        ),
        ({"version": 0, "min_reader": 0}, lambda f: f.check_version(1), "version is 0"),
    ],
)
def test_fields_say_where_and_what_is_wanted(value: Any, ask: Callable[[Field], Any], error: str) -> None:
    with pytest.raises(ManifestError, match=error):
        ask(read(json.dumps(value)))


def test_newer_versions() -> None:
    assert read('{"version": 3, "min_reader": 1}').check_version(1) == 3
    with pytest.raises(cdd.UnsupportedError, match="for readers of version 2: this one is of version 1"):
        read('{"version": 3, "min_reader": 2}').check_version(1)


def test_fields_of_newer_writers_pass() -> None:
    assert set(read('{"a": 1, "x-b": 2}').object(["a"])) == {"a", "x-b"}


def test_own_error_type() -> None:
    class OwnError(ManifestError):
        pass

    with pytest.raises(OwnError):
        parse("[]", "m", 10, OwnError).object(["a"])


def test_text_of_comes_back() -> None:
    value = {"a": [1, {"é": None}], "b": "x"}
    assert parse(text_of(value), "m", 100).value == value
    with pytest.raises(ValueError, match="not JSON compliant"):
        text_of({"a": float("nan")})
