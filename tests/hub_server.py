"""A server on loopback that speaks as much of the Hugging Face hub's API as its package asks for to fetch a model."""

from __future__ import annotations

import contextlib
import hashlib
import http.server
import json
import threading
from collections.abc import Iterator
from pathlib import Path

COMMIT = "0123456789abcdef0123456789abcdef01234567"


class _Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_HEAD(self) -> None:  # noqa: N802  (http.server's name)
        self.do_GET()

    def do_GET(self) -> None:  # noqa: N802
        server = self.server
        server.asked.append((self.command, self.path, self.headers.get("authorization")))  # type: ignore[attr-defined]
        path = self.path.partition("?")[0]
        for name, folder in server.models.items():  # type: ignore[attr-defined]
            names = sorted(file.name for file in folder.iterdir())
            if path in {f"/api/models/{name}", *(f"/api/models/{name}/revision/{one}" for one in ("main", "v1", COMMIT))}:
                siblings = [{"rfilename": file} for file in names]
                return self._send(
                    json.dumps({"id": name, "sha": COMMIT, "siblings": siblings}).encode(), {"Content-Type": "application/json"}
                )
            if path.startswith(f"/api/models/{name}/tree/"):
                tree = [
                    {"type": "file", "path": file, "size": (folder / file).stat().st_size, "oid": "0" * 40} for file in names
                ]
                return self._send(json.dumps(tree).encode(), {"Content-Type": "application/json"})
            beginning = f"/{name}/resolve/{COMMIT}/"
            if path.startswith(beginning) and path.removeprefix(beginning) in names:
                data = (folder / path.removeprefix(beginning)).read_bytes()
                return self._send(data, {"ETag": f'"{hashlib.sha256(data).hexdigest()}"', "X-Repo-Commit": COMMIT})
            if path.startswith(beginning):
                return self._send(b"{}", {"X-Error-Code": "EntryNotFound", "X-Repo-Commit": COMMIT}, 404)
        code = "RevisionNotFound" if "/revision/" in path and any(name in path for name in server.models) else "RepoNotFound"  # type: ignore[attr-defined]
        return self._send(b"{}", {"X-Error-Code": code}, 404)

    def _send(self, data: bytes, headers: dict[str, str], status: int = 200) -> None:
        self.send_response(status)
        for name, value in {**headers, "Content-Length": str(len(data))}.items():
            self.send_header(name, value)
        self.end_headers()
        if self.command == "GET":
            self.wfile.write(data)

    def log_message(self, *_: object) -> None:
        pass


@contextlib.contextmanager
def serving(models: dict[str, Path]) -> Iterator[tuple[str, list[tuple[str, str, str | None]]]]:
    """Serves folders by their names; yields the address, and the requests so far."""
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), _Handler) as server:
        server.models, server.asked = models, []  # type: ignore[attr-defined]
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}", server.asked  # type: ignore[attr-defined]
        finally:
            server.shutdown()
            thread.join()
