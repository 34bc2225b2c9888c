"""A server of objects that does what real ones do at their worst: it delays, cuts, refuses, stalls and lies.

It speaks HTTP as obstore's HTTPStore asks it, counts requests and bytes, and breaks as many replies as it is
told to.
"""

import hashlib
import multiprocessing
import threading
import time
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


class FarServer:
    """Objects in memory, served at `url`."""

    def __init__(self) -> None:
        self.objects: dict[str, bytes] = {}
        self._tags: dict[str, tuple[bytes, str]] = {}
        self.delay_s = 0.0
        self.requests = 0
        self.sent = 0
        self.ranges: list[tuple[str, int, int]] = []
        self.breaks: Callable[[str, int], str | None] = lambda _, __: None  # (key, number of the request)
        self._mutex = threading.Lock()
        server = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            wbufsize = (
                1 << 16
            )  # head and body in one packet: else the second waits for an answer to the first
            disable_nagle_algorithm = True

            def do_GET(self) -> None:
                server._answer(self, with_body=True)

            def do_HEAD(self) -> None:
                server._answer(self, with_body=False)

            def log_message(self, *_: Any) -> None:
                pass

        class Server(ThreadingHTTPServer):
            daemon_threads = True
            request_queue_size = 128

            def handle_error(self, *_: Any) -> None:
                pass

        self._server = Server(("127.0.0.1", 0), Handler)
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)
        self._thread.start()

    @property
    def url(self) -> str:
        return "://".join(("http", f"127.0.0.1:{self._server.server_address[1]}"))

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def count(self) -> tuple[int, int]:
        """Requests and bytes sent since the last call."""
        with self._mutex:
            found = self.requests, self.sent
            self.requests = self.sent = 0
            self.ranges = []
        return found

    def _answer(self, handler: BaseHTTPRequestHandler, with_body: bool) -> None:
        key = handler.path.lstrip("/")
        with self._mutex:
            self.requests += 1
            number = self.requests
        time.sleep(self.delay_s)
        fault = self.breaks(key, number)
        data = self.objects.get(key)
        if fault in ("503", "429", "500"):
            return self._say(handler, int(fault))
        if fault == "stall":
            time.sleep(1.5)
            handler.close_connection = True
            return None
        if data is None:
            return self._say(handler, 404)
        e_tag = self._tag_of(key, data)
        wanted = handler.headers.get("If-Match")
        if wanted is not None and wanted.strip('"') != e_tag.strip('"'):
            return self._say(handler, 412)
        asked = handler.headers.get("Range")
        start, stop, status = 0, len(data), 200
        if asked is not None and fault != "whole":
            first, _, last = asked.removeprefix("bytes=").partition("-")
            start, stop, status = int(first), min(len(data), int(last) + 1), 206
            if start >= len(data):
                return self._say(handler, 416)
        body = data[start:stop]
        told = start, stop
        if fault == "shifted":  # other bytes than it says
            body = data[max(0, start - 1) : max(0, start - 1) + len(body)]
        elif fault == "range":  # says so
            told = start + 1, stop + 1
        elif fault == "flip" and body:
            body = bytes([body[0] ^ 1]) + body[1:]
        handler.send_response(status)
        handler.send_header("ETag", e_tag)
        handler.send_header("Last-Modified", "Mon, 01 Jan 2024 00:00:00 GMT")
        if status == 206:
            handler.send_header("Content-Range", f"bytes {told[0]}-{told[1] - 1}/{len(data)}")
        handler.send_header("Content-Length", str(len(body)))
        handler.end_headers()
        if not with_body:
            return None
        with self._mutex:
            self.sent += len(body)
            self.ranges.append((key, start, stop))
        if fault == "cut":
            body = body[: len(body) // 2]
            handler.close_connection = True
        handler.wfile.write(body)
        handler.wfile.flush()
        return None

    def _tag_of(self, key: str, data: bytes) -> str:
        known = self._tags.get(key)
        if known is None or known[0] is not data:
            known = data, f'"{hashlib.blake2b(data, digest_size=8).hexdigest()}"'
            self._tags[key] = known
        return known[1]

    def _say(self, handler: BaseHTTPRequestHandler, status: int) -> None:
        handler.send_response(status)
        handler.send_header("Content-Length", "0")
        handler.end_headers()


class FarProcess:
    """A FarServer in a process of its own, for measuring: in one process both would wait for one another."""

    def __init__(self, objects: dict[str, bytes]) -> None:
        context = multiprocessing.get_context("spawn")
        self._here, there = context.Pipe()
        self._process = context.Process(target=_serve, args=(objects, there), daemon=True)
        self._process.start()
        self.url: str = self._here.recv()

    def ask(self, what: str, value: float = 0.0) -> Any:
        """ "count" gives (requests, bytes sent) since the last time, "delay" sets seconds for each reply."""
        self._here.send((what, value))
        return self._here.recv()

    def close(self) -> None:
        self._process.kill()
        self._process.join()


def _serve(objects: dict[str, bytes], connection: Any) -> None:
    server = FarServer()
    server.objects = objects
    connection.send(server.url)
    while True:
        what, value = connection.recv()
        if what == "delay":
            server.delay_s = value
        connection.send(server.count())
