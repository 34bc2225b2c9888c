"""The event loops on which awaited calls are tested."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import pytest


def loops() -> list[str]:
    names = ["asyncio"]
    try:
        import uvloop  # noqa: F401

        names.append("uvloop")
    except ImportError:
        pass
    try:
        import trio  # noqa: F401

        names.append("trio")
    except ImportError:
        pass
    return names


@pytest.fixture(params=loops())
def run(request: pytest.FixtureRequest) -> Callable[[Callable[[], Coroutine[Any, Any, Any]]], Any]:
    if request.param == "trio":
        import trio

        return trio.run
    if request.param == "uvloop":
        import uvloop

        return lambda main: uvloop.run(main())
    return lambda main: asyncio.run(main())
