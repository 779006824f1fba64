"""Downloads a file from an HTTP server, whole or not at all."""

from __future__ import annotations

import http.client
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from bert_tf import atomic, progress
from bert_tf.errors import DataError

TIMEOUT_S = 30.0
MOST_BYTES = 1 << 31  # the largest published file has 0.5 GB

_BLOCK = 1 << 16


class _Redirects(urllib.request.HTTPRedirectHandler):
    """Refuses redirects from https to http, which could be tampered with in transit."""

    def redirect_request(self, req: Any, fp: Any, code: int, msg: str, headers: Any, newurl: str) -> Any:
        if req.type == "https" and not newurl.lower().startswith("https:"):
            raise urllib.error.URLError(f"redirected from https to {newurl:.200}, which is not followed")
        return super().redirect_request(req, fp, code, msg, headers, newurl)


_opener = urllib.request.build_opener(_Redirects)


def download(url: str, target: Path) -> None:
    """Downloads a file unless it exists; DataError for the server, OutputError for the disk."""
    if target.is_file():
        return
    atomic.delete_unfinished(target)
    with atomic.replacing(target) as part, part.open("wb") as file:
        file.writelines(_received(url))


def _received(url: str) -> Iterator[bytes]:
    """Yields the response, with a progress bar on a terminal.

    Failures become DataError here: `atomic.replacing` would attribute an OSError to the disk.
    """
    try:
        with _opener.open(url, timeout=TIMEOUT_S) as response:
            name = url.rsplit("/", 1)[-1]
            received = 0
            with progress.bar(desc=name, total=response.length, unit="B", unit_scale=True) as bar:
                for block in iter(lambda: response.read(_BLOCK), b""):
                    received += len(block)
                    if received > MOST_BYTES:
                        raise DataError(f"has more than {MOST_BYTES >> 20} MB; it was not used", url)
                    yield block
                    bar.update(len(block))
            if response.length:  # what is left; `read` is silent about it
                raise http.client.HTTPException(f"the connection broke off {response.length} bytes before the end")
    except urllib.error.HTTPError as error:
        raise DataError(f"cannot be fetched: {error.code} {error.reason}", url) from error
    except (OSError, http.client.HTTPException) as error:
        problem = str(getattr(error, "reason", error)) or type(error).__name__
        raise DataError(f"cannot be fetched: {problem}; try again, or name a folder that has it with --from", url) from error
