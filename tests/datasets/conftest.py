"""A real HTTP server on loopback that can also misbehave, and the folder of converted files."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

CONVERTED = Path(os.environ.get("CALIBRANT_DATA", "converted")).resolve()


class Mirror:
    """Serves bytes by path; `faults` says how an answer goes wrong."""

    def __init__(self) -> None:
        self.files: dict[str, bytes] = {}
        self.faults: dict[str, str] = {}
        self.requests: list[str] = []
        mirror = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                mirror.requests.append(self.path)
                mirror.answer(self)

            def log_message(self, *_: object) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._thread = threading.Thread(
            target=self._server.serve_forever, args=(0.01,), daemon=True
        )
        self._thread.start()
        self.address = f"http://127.0.0.1:{self._server.server_port}"

    def answer(self, handler: BaseHTTPRequestHandler) -> None:
        body = self.files.get(handler.path)
        fault = self.faults.get(handler.path)
        if body is None:
            handler.send_error(404)
            return
        handler.send_response(200)
        if fault != "no length":
            handler.send_header("Content-Length", str(len(body)))
        handler.end_headers()
        if fault in ("interrupted", "no length"):
            body = body[: len(body) // 2]
        if fault == "corrupted":
            body = body.replace(b"0.25", b"0.26", 1)
        handler.wfile.write(body)

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


@pytest.fixture
def mirror() -> Iterator[Mirror]:
    server = Mirror()
    yield server
    server.close()


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty cache, and no folder of converted files."""
    monkeypatch.delenv("CALIBRANT_DATA", raising=False)
    monkeypatch.setenv("CALIBRANT_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.fixture
def converted(monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of converted files, named as a user would name it."""
    if not CONVERTED.is_dir():
        pytest.skip("CALIBRANT_DATA names no folder of converted files")
    monkeypatch.setenv("CALIBRANT_DATA", str(CONVERTED))
    return CONVERTED
