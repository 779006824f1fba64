"""A file from an HTTP server, whole or not at all."""

from __future__ import annotations

import http.client
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path

from bert_tf import atomic, progress
from bert_tf.errors import DataError

TIMEOUT_S = 30.0

_BLOCK = 1 << 16


def download(url: str, target: Path) -> None:
    """Fetches a file unless it is there.

    Args:
      url: where the file is.
      target: where it is to be.

    Raises:
      DataError: the server cannot be reached, has no such file, or breaks off.
      OutputError: the file cannot be written.
    """
    if target.is_file():
        return
    atomic.delete_unfinished(target)
    with atomic.replacing(target) as part, part.open("wb") as file:
        file.writelines(_received(url))


def _received(url: str) -> Iterator[bytes]:
    """Yields what the server sends, with a progress bar on a terminal.

    What fails here is a DataError at once: `atomic.replacing` would take an OSError for one of the disk.

    Raises:
      DataError: as `download`.
    """
    try:
        with urllib.request.urlopen(url, timeout=TIMEOUT_S) as response:  # noqa: S310  (ours)
            name = url.rsplit("/", 1)[-1]
            with progress.bar(desc=name, total=response.length, unit="B", unit_scale=True) as bar:
                for block in iter(lambda: response.read(_BLOCK), b""):
                    yield block
                    bar.update(len(block))
            if response.length:  # what is left; `read` is silent about it
                raise http.client.HTTPException(f"the connection broke off {response.length} bytes before the end")
    except urllib.error.HTTPError as error:
        raise DataError(f"cannot be fetched: {error.code} {error.reason}", url) from error
    except (OSError, http.client.HTTPException) as error:
        problem = str(getattr(error, "reason", error)) or type(error).__name__
        raise DataError(f"cannot be fetched: {problem}; try again, or name a folder that has it with --from", url) from error
