"""JSON that says what an array or a dataset is made of, read strictly.

A Field is a value and where it stands. It gives its value as what is wanted there, and raises an error that
names the place, what came, and what is wanted: `regions[3].hi[0] is 8.5: an integer from 0 to 512 is wanted`.
An object that lacks a field, or has one that nobody knows, is an error, but for names that begin with "x-",
which newer writers may add. Names that come twice, NaN and Infinity are errors.

Nothing here knows what a manifest says; sizes are bounded before anything is made of them.
"""

import json
from collections.abc import Mapping, Sequence
from typing import Any, NoReturn

from cdd import _cdd


class ManifestError(_cdd.CddError):
    """A manifest that says what no writer says: the place in the JSON, what is allowed, what came."""


def parse(data: bytes | str, what: str, most_bytes: int, error: type[Exception] = ManifestError) -> "Field":
    """The value of a JSON text, named `what` in errors. `error` is the type of those errors, also of all that
    the fields of it raise."""
    if len(data) > most_bytes:
        raise error(f"{what} is {len(data):,} bytes of JSON, {most_bytes:,} are allowed")
    try:
        value = json.loads(data, object_pairs_hook=_unique, parse_constant=_no_number)
    except _StrictError as refused:
        raise error(f"{what}: {refused}") from None
    except RecursionError:
        raise error(f"{what}: lists and objects lie too deep in each other") from None
    except ValueError as wrong:  # JSONDecodeError and UnicodeDecodeError too
        raise error(f"{what} is no JSON: {wrong}") from None
    return Field(value, "", error, what)


class _StrictError(Exception):
    """JSON that Python would take."""


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        seen: set[str] = set()
        for name, _ in pairs:
            if name in seen:
                raise _StrictError(f"the field {name!r} comes twice in one object")
            seen.add(name)
    return found


def _no_number(text: str) -> NoReturn:
    raise _StrictError(f"{text} is not in JSON: numbers like it are written as texts")


def shown(value: Any) -> str:
    """A value of JSON on one short line."""
    if isinstance(value, dict | list) and len(value) > 8:
        return f"{'an object' if isinstance(value, dict) else 'a list'} of {len(value):,}"
    text = json.dumps(value) if isinstance(value, dict | list | str | bool) or value is None else repr(value)
    return text if len(text) <= 60 else f"{text[:50]}..."


class Field:
    """A value of a manifest, and its place there."""

    __slots__ = ("error", "path", "value", "what")

    def __init__(
        self, value: Any, path: str = "", error: type[Exception] = ManifestError, what: str = "the manifest"
    ) -> None:
        self.value, self.path, self.error, self.what = value, path, error, what

    def fail(self, wanted: str) -> NoReturn:
        """Raises an error: what the value is, and what is `wanted` there."""
        raise self.error(f"{self.path or self.what} is {shown(self.value)}: {wanted}")

    def at(self, name: str | int, value: Any) -> "Field":
        """The field of that name or number within this one."""
        if isinstance(name, int):
            path = f"{self.path}[{name}]"
        else:
            path = f"{self.path}.{name}" if self.path else name
        return Field(value, path, self.error, self.what)

    def object(self, required: Sequence[str], optional: Sequence[str] = ()) -> "dict[str, Field]":
        """The fields of an object. All of `required` are there, none but those and `optional` and "x-..."."""
        if not isinstance(self.value, dict):
            self.fail("an object is wanted")
        for name in required:
            if name not in self.value:
                raise self.error(f"{self.path or self.what} has no field {name!r}")
        for name in self.value:
            if name not in required and name not in optional and not name.startswith("x-"):
                known = ", ".join([*required, *optional])
                raise self.error(f"{self.path or self.what} has the field {name!r}: only {known} are known")
        return {name: self.at(name, value) for name, value in self.value.items()}

    def items(self, most: int, least: int = 0) -> "list[Field]":
        """The items of a list of `least` to `most`."""
        self.length(least, most)
        return [self.at(number, value) for number, value in enumerate(self.value)]

    def length(self, least: int, most: int) -> int:
        """How many items the list has."""
        if not isinstance(self.value, list):
            self.fail("a list is wanted")
        if not least <= len(self.value) <= most:
            allowed = f"{most:,}" if least == most else f"{least:,} to {most:,}"
            raise self.error(f"{self.path or self.what} has {len(self.value):,} items: {allowed} are allowed")
        return len(self.value)

    def integer(self, least: int, most: int) -> int:
        if type(self.value) is not int or not least <= self.value <= most:
            self.fail(f"an integer from {least} to {most} is wanted")
        return self.value

    def integers(self, count: int, least: int, most: int) -> tuple[int, ...]:
        """A list of so many integers."""
        return tuple(item.integer(least, most) for item in self.items(count, count))

    def text(self, most_bytes: int = 4096) -> str:
        if not isinstance(self.value, str):
            self.fail("a text is wanted")
        try:
            size = len(self.value.encode())
        except UnicodeEncodeError:
            self.fail("a text that is Unicode is wanted")
        if size > most_bytes:
            self.fail(f"a text of at most {most_bytes:,} bytes is wanted, it has {size:,}")
        return self.value

    def flag(self) -> bool:
        if not isinstance(self.value, bool):
            self.fail("true or false is wanted")
        return self.value

    def choice(self, allowed: Sequence[str]) -> str:
        """One of these texts."""
        if self.value not in allowed or not isinstance(self.value, str):
            self.fail(f"{', '.join(map(json.dumps, allowed))} are allowed")
        return self.value

    def check_version(self, known: int) -> int:
        """`version` of the object. Raises UnsupportedError where its `min_reader` is above `known`."""
        if not isinstance(self.value, dict):
            self.fail("an object is wanted")
        numbers = []
        for name in ("version", "min_reader"):
            if name not in self.value:
                raise self.error(f"{self.path or self.what} has no field {name!r}")
            numbers.append(self.at(name, self.value[name]).integer(1, 1 << 31))
        version, min_reader = numbers
        if min_reader > version:
            self.at("min_reader", min_reader).fail(f"it is above version, {version}")
        if min_reader > known:
            raise _cdd.UnsupportedError(
                f"{self.what} is of version {version}, for readers of version {min_reader}: this one is of "
                f"version {known}"
            )
        return version


def text_of(manifest: Mapping[str, Any], indent: int | None = None) -> str:
    """The JSON text that parse() gives back. ValueError for NaN and Infinity."""
    separators = (",", ":") if indent is None else None
    return json.dumps(manifest, allow_nan=False, ensure_ascii=False, indent=indent, separators=separators)
