"""A file from an HTTP server, whole or not at all; what was received before a break is kept and continued."""

from __future__ import annotations

import http.client
import os
import re
import urllib.error
import urllib.request
from pathlib import Path

from tqdm import tqdm

from bert_tf import atomic
from bert_tf.errors import DataError

TIMEOUT_S = 30.0

_BLOCK = 1 << 16
_PARTIAL, _NOTHING_LEFT = 206, 416


def download(url: str, target: Path) -> None:
    """Fetches a file unless it is there; goes on where an earlier call, or a connection, broke off.

    It is tried again as long as each try gets further. What is there of it lies in `target` with `.part` behind its name.

    Raises:
      DataError: the server cannot be reached, has no such file, or breaks off twice at the same byte.
      OutputError: the file cannot be written.
    """
    if target.is_file():
        return
    atomic.make_folder(target.parent)
    part = target.with_name(f"{target.name}.part")
    while True:
        before = _size(part)
        try:
            if _receive(url, part):
                break
            problem = "the connection broke off"
        except urllib.error.HTTPError as error:
            raise DataError(f"cannot be fetched: {error.code} {error.reason}", url) from error
        except (OSError, http.client.HTTPException) as error:
            problem = str(getattr(error, "reason", error)) or type(error).__name__
        kept = _size(part)
        if kept <= before:
            remedy = f"{kept} bytes are kept, the same command goes on there" if kept else "--from=FOLDER takes it from there"
            raise DataError(f"cannot be fetched: {problem}; {remedy}", url)
    with atomic.readable_errors(target):
        os.replace(part, target)


def _receive(url: str, part: Path) -> bool:
    """Appends what is missing; returns whether the file is now whole."""
    start = _size(part)
    request = urllib.request.Request(url, headers={"Range": f"bytes={start}-"} if start else {})  # noqa: S310  (ours)
    try:
        with urllib.request.urlopen(request, timeout=TIMEOUT_S) as response:  # noqa: S310
            if response.status != _PARTIAL:  # the server sends the file from its beginning
                start = 0
            left = response.headers["Content-Length"]
            total = None if left is None else start + int(left)
            with atomic.readable_errors(part):
                file = part.open("ab" if start else "wb")
            with file, _bar(url, start, total) as bar:
                for block in iter(lambda: response.read(_BLOCK), b""):
                    with atomic.readable_errors(part):
                        file.write(block)
                    bar.update(len(block))
    except urllib.error.HTTPError as error:
        if error.code != _NOTHING_LEFT or not start:
            raise
        size = re.search(r"\*/(\d+)", error.headers.get("Content-Range", ""))
        if size and int(size[1]) == start:
            return True
        part.unlink()  # it is longer than the file: another one
        return _receive(url, part)
    return total is None or _size(part) == total


def _bar(url: str, start: int, total: int | None) -> tqdm:
    """Returns a progress bar, which is silent where there is no terminal."""
    return tqdm(desc=url.rsplit("/", 1)[-1], initial=start, total=total, unit="B", unit_scale=True, disable=None)


def _size(path: Path) -> int:
    return path.stat().st_size if path.is_file() else 0
