"""Requests to an object store, by obstore: retried, checked against what was asked, errors as Python's own.

What a server answers is not trusted: range, length, size and version of each reply are compared with those
that were asked for. What then is still wrong, the checks of the store itself find.
"""

import errno
import os
import random
import re
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, TypeVar

from cdd import _cdd
from cdd.arguments import shown

try:
    import obstore
    import obstore.store
    from obstore import exceptions as failures
except ModuleNotFoundError as error:
    if error.name != "obstore":
        raise
    raise ImportError('cdd.remote needs obstore: pip install "cdd[remote]"', name="obstore") from None

TRIES = 4  # of a request that failed in a way that passes, beside those that obstore makes itself
_FIRST_WAIT_S = 0.05
_RETRIES = {"max_retries": 2, "retry_timeout": timedelta(seconds=60)}
_CLIENT = {"timeout": "30s", "connect_timeout": "5s"}
# What of a store's options may stand in a pickle; anything else may be a secret.
_OPEN_OPTIONS = {
    "endpoint", "aws_endpoint", "endpoint_url", "aws_endpoint_url", "region", "aws_region", "bucket",
    "skip_signature", "aws_skip_signature", "virtual_hosted_style_request", "client_options", "retry_config",
}  # fmt: skip
_OPEN_CLIENT_OPTIONS = {
    "timeout",
    "connect_timeout",
    "read_timeout",
    "allow_http",
    "http1_only",
    "http2_only",
}

T = TypeVar("T")

_used_by: int | None = None  # the process that made the first request


def _check_process() -> None:
    """obstore's threads do not live on in a forked child, where a request would wait for ever."""
    global _used_by
    if _used_by is None:
        _used_by = os.getpid()
    if _used_by != os.getpid():
        raise RuntimeError(
            "cdd.remote was used before this process was forked off, and its connections are not here: start "
            'workers by "spawn" or "forkserver", as DataLoader(multiprocessing_context="spawn"), or use '
            "threads, as cdd.torch.Loader"
        )


@dataclass(frozen=True)
class Version:
    """Which object a key led to."""

    size: int
    e_tag: str | None
    modified: str  # where a server has no ETags


@dataclass(frozen=True)
class Reply:
    """Bytes of an object, from where they were asked for."""

    data: Any  # a buffer
    version: Version


class Wire:
    """A store that obstore reaches, or one prefix of it. Any number of threads may use it."""

    def __init__(self, store: Any, name: str, connections: int = 32) -> None:
        self.store = store
        self.name = name.rstrip("/")
        self.connections = connections
        self.requests = 0  # that were answered
        self.fetched_bytes = 0
        self._mutex = threading.Lock()
        self._pools: dict[bool, ThreadPoolExecutor] = {}

    def url(self, key: str) -> str:
        return f"{self.name}/{key}"

    def submit(self, work: Callable[..., T], *arguments: Any, waits: bool = False) -> "Future[T]":
        """Runs work in one of as many threads as there may be connections. Work that waits for other work
        says so: it has threads of its own."""
        _check_process()
        with self._mutex:
            if waits not in self._pools:
                self._pools[waits] = ThreadPoolExecutor(self.connections, thread_name_prefix="cdd-remote")
            return self._pools[waits].submit(work, *arguments)

    def close(self) -> None:
        """Lets threads end that have nothing to do."""
        with self._mutex:
            for pool in self._pools.values():
                pool.shutdown(wait=False)
            self._pools = {}

    # ------------------------------------------------------------ reading

    def get(self, key: str, start: int, stop: int, version: Version | None = None) -> Reply:
        """Bytes [start, stop) of an object, fewer where it ends before. With `version` of that alone:
        FormatError where the key leads to another by now. Raises FileNotFoundError, PermissionError and
        OSError."""
        options: dict[str, Any] = {"range": (start, stop)}
        if version is not None and version.e_tag is not None:
            options["if_match"] = version.e_tag
        return self._try(key, lambda: self._get(key, start, stop, version, options))

    def whole(self, key: str) -> Reply:
        """All of an object."""

        def get() -> Reply:
            found = obstore.get(self.store, key)
            data = found.bytes()
            if len(data) != found.meta["size"]:
                raise _BadReplyError(f"{len(data)} bytes came of {found.meta['size']}")
            return self._answered(data, _version_of(found.meta))

        return self._try(key, get)

    def _get(
        self, key: str, start: int, stop: int, version: Version | None, options: dict[str, Any]
    ) -> Reply:
        found = obstore.get(self.store, key, options=options)
        data = found.bytes()
        now = _version_of(found.meta)
        if version is not None and now != version:
            raise replaced(self.url(key))
        wanted = (start, min(stop, now.size))
        if tuple(found.range) != wanted or len(data) != wanted[1] - wanted[0]:
            raise _BadReplyError(
                f"bytes {wanted[0]} to {wanted[1]} were asked for, {len(data)} bytes of {found.range[0]} to "
                f"{found.range[1]} came"
            )
        return self._answered(data, now)

    def _answered(self, data: Any, version: Version) -> Reply:
        with self._mutex:
            self.requests += 1
            self.fetched_bytes += len(data)
        return Reply(data, version)

    def head(self, key: str) -> Version | None:
        """The version of an object; None where there is none."""
        try:
            return self._try(key, lambda: _version_of(obstore.head(self.store, key)))
        except FileNotFoundError:
            return None

    def list(self, prefix: str) -> Iterator[str]:
        """Names right below a prefix, of objects and of longer prefixes."""
        found = self._try(prefix, lambda: obstore.list_with_delimiter(self.store, prefix or None))
        lead = f"{prefix}/" if prefix else ""
        for path in (*found["common_prefixes"], *(one["path"] for one in found["objects"])):
            yield str(path).rstrip("/").removeprefix(lead)

    def sizes(self, prefix: str) -> dict[str, int]:
        """Bytes of the objects right below a prefix, by their keys."""
        found = self._try(prefix, lambda: obstore.list_with_delimiter(self.store, prefix))
        return {str(one["path"]): int(one["size"]) for one in found["objects"]}

    def modified(self, key: str) -> datetime | None:
        """When an object was put; None where there is none."""
        try:
            found: datetime = self._try(key, lambda: obstore.head(self.store, key)["last_modified"])
        except FileNotFoundError:
            return None
        return found

    # ------------------------------------------------------------ writing

    def put(self, key: str, data: Any, create: bool) -> str | None:
        """Writes an object; with `create` only where there is none: FileExistsError. Returns its ETag."""

        def put() -> str | None:
            found = obstore.put(self.store, key, data, mode="create" if create else "overwrite",
                                **({"use_multipart": False} if create else {}))  # fmt: skip
            e_tag: str | None = found["e_tag"]
            return e_tag

        return self._try(key, put, again=not create)

    def delete(self, key: str) -> None:
        try:
            self._try(key, lambda: obstore.delete(self.store, key))
        except FileNotFoundError:
            return

    # ------------------------------------------------------------ errors

    def _try(self, key: str, request: Callable[[], T], again: bool = True) -> T:
        _check_process()
        wait = _FIRST_WAIT_S
        for left in reversed(range(TRIES if again else 1)):
            try:
                return request()
            except (failures.BaseError, OSError, ValueError) as error:
                told = self._told(key, error)
                if told is not None:
                    raise told from None
                if left == 0:
                    raise OSError(errno.EIO, f"{_scrubbed(error)}", self.url(key)) from None
            time.sleep(wait * random.uniform(0.5, 1.5))
            wait *= 2
        raise AssertionError("there is a last try")

    def _told(self, key: str, error: Exception) -> Exception | None:
        """The exception for what does not pass by waiting."""
        url = self.url(key)
        if isinstance(error, _cdd.CddError):
            return error
        if isinstance(error, FileNotFoundError):
            return FileNotFoundError(errno.ENOENT, "No such object", url)
        if isinstance(error, FileExistsError | failures.AlreadyExistsError):
            return FileExistsError(errno.EEXIST, "there is an object of that name", url)
        if isinstance(error, failures.PreconditionError):
            return replaced(url)
        if isinstance(error, failures.PermissionDeniedError | failures.UnauthenticatedError):
            return PermissionError(errno.EACCES, "the store refuses it", url)
        if isinstance(error, failures.NotSupportedError):
            return OSError(errno.EOPNOTSUPP, f"the server gives no parts of objects: {_scrubbed(error)}", url)
        if isinstance(error, failures.InvalidPathError | failures.UnknownConfigurationKeyError):
            return ValueError(f"{url}: {_scrubbed(error)}")
        return None


class _BadReplyError(OSError):
    """A reply that is not what was asked for; the next may be."""


def replaced(url: str) -> Exception:
    return _cdd.FormatError(f"{url} was replaced since it was opened: open it again")


def _version_of(meta: Mapping[str, Any]) -> Version:
    return Version(int(meta["size"]), meta["e_tag"], "" if meta["e_tag"] else str(meta["last_modified"]))


def _scrubbed(error: Exception) -> str:
    """An error's text on one line, without what may be a secret in it."""
    text = " ".join(str(error).partition("Debug source")[0].split())
    text = re.sub(r"://[^/@\s]*@", "://", text)
    text = re.sub(r"\?[^\s\"')>]*", "", text)
    text = re.sub(r"(?i)(authorization|token|secret|signature|password)\S*\s*[:=]\s*\S+", r"\1: ...", text)
    return text if len(text) <= 400 else f"{text[:400]}..."


# ------------------------------------------------------------ finding the store


def wire_of(
    target: Any, key: str | None, connections: int, options: Mapping[str, Any]
) -> tuple[Wire, str, str | None]:
    """The store of a URL, or one that is open, and the key within; the URL, where it was one."""
    if not isinstance(target, str):
        check_store(target)
        if key is None:
            raise TypeError("of a store that is open a key is needed, too")
        if options:
            raise TypeError(f"{', '.join(options)}: of a store that is open nothing more is to be said")
        return Wire(target, type(target).__name__.lower() + ":/", connections), key, None
    if key is not None:
        target, key = f"{target.rstrip('/')}/{key}", None
    parent, _, name = target.rpartition("/")
    if not name or "://" not in target or parent.endswith(":/"):
        raise ValueError(f"{without_secrets(target)} is no URL of an object: s3://BUCKET/NAME")
    if "?" in target or "#" in target:
        raise ValueError(f"{without_secrets(target)} has a query: objects are named by path alone")
    return Wire(store_of(parent, options), without_secrets(parent), connections), name, target


def check_store(target: Any) -> None:
    """TypeError for what is no store that is open."""
    if target is None or isinstance(target, bytes | int | os.PathLike):
        raise TypeError(f"an object store is a URL or a store of obstore, not {shown(target)}")


def store_of(url: str, options: Mapping[str, Any]) -> Any:
    """obstore's store for a URL."""
    given = dict(options)
    # obstore panics at some of these, which no `except Exception` sees.
    if misplaced := sorted(given.keys() & _OPEN_CLIENT_OPTIONS):
        raise TypeError(f"{misplaced[0]}= goes into client_options={{{misplaced[0]!r}: ...}}")
    if not url.startswith(("memory:", "file:")):
        client = {**_CLIENT, **given.pop("client_options", {})}
        endpoints = [value for name, value in given.items() if "endpoint" in name and isinstance(value, str)]
        if any(place.startswith("http:") for place in (url, *endpoints)):
            client.setdefault("allow_http", True)
        given["client_options"] = client
        given.setdefault("retry_config", _RETRIES)
    try:
        return obstore.store.from_url(url, **given)
    except (failures.BaseError, ValueError) as error:
        raise ValueError(f"{without_secrets(url)}: {_scrubbed(error)}") from None


def without_secrets(url: str) -> str:
    """A URL without user and password, and without a query."""
    return re.sub(r"://[^/@]*@", "://", url).partition("?")[0]


def may_be_pickled(url: str, options: Mapping[str, Any]) -> bool:
    """Whether nothing of it may be a secret."""
    client = options.get("client_options", {})
    return (
        url == without_secrets(url)
        and options.keys() <= _OPEN_OPTIONS
        and isinstance(client, Mapping)
        and client.keys() <= _OPEN_CLIENT_OPTIONS
    )
