"""Attributes of an array: a dict of what JSON can say, kept in a store's user_meta after a marker.

JSON is imported when there are some: most stores have none.
"""

import math
from collections.abc import Mapping
from typing import Any

from cdd.arguments import shown

_MARKER = b'{"cdd-attrs":1,'
_MOST_BYTES = 64 << 20  # of user_meta


def encoded(attrs: Mapping[str, Any]) -> bytes:
    """The attributes as user_meta, no bytes for none. TypeError or ValueError for what JSON does not have."""
    if not isinstance(attrs, Mapping):
        raise TypeError(f"attrs is a dict of what JSON has, not {shown(attrs)}")
    if not attrs:
        return b""
    _check(attrs, "attrs")
    import json

    text = json.dumps({"attributes": dict(attrs)}, ensure_ascii=False, separators=(",", ":"))
    return _MARKER + text[1:].encode()


def decoded(user_meta: bytes) -> dict[str, Any]:
    """The attributes in user_meta; none where it is something else. ManifestError for damaged JSON."""
    if not user_meta.startswith(_MARKER):
        return {}
    from cdd.manifests import parse

    field = parse(user_meta, "attrs", _MOST_BYTES)
    attrs = field.value.get("attributes")
    if not isinstance(attrs, dict):
        field.fail('{"cdd-attrs":1,"attributes":{...}} is wanted')
    return attrs


def _is_unicode(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _check(value: Any, place: str) -> None:
    """Raises for what would come back as something else, or not at all."""
    if isinstance(value, Mapping):
        for name, item in value.items():
            if not isinstance(name, str):
                raise TypeError(f"names in {place} are texts, not {shown(name)}")
            if not _is_unicode(name):
                raise ValueError(f"a name in {place} is {shown(name)}, which has half of a surrogate pair")
            _check(item, f"{place}[{name!r}]")
    elif isinstance(value, list | tuple):
        for at, item in enumerate(value):
            _check(item, f"{place}[{at}]")
    elif isinstance(value, str) and not _is_unicode(value):
        raise ValueError(f"{place} is {shown(value)}, which has half of a surrogate pair: no UTF-8 has it")
    elif value is not None and type(value) not in (str, int, float, bool):
        raise TypeError(f"{place} is {shown(value)}: JSON has texts, numbers, bools, None, lists and dicts")
    elif isinstance(value, float) and not math.isfinite(value):
        raise ValueError(f"{place} is {value}: JSON has no such number, write it as a text")
