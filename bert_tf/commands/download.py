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

    It is tried again as long as each try gets further. What is there of it lies in `target` with `.part` behind its name, and
    which version of the file that is of, as the server calls it, in `.version` behind that; without it the file begins anew.

    Raises:
      DataError: the server cannot be reached, has no such file, or breaks off twice at the same byte.
      OutputError: the file cannot be written.
    """
    if target.is_file():
        return
    atomic.make_folder(target.parent)
    part = target.with_name(f"{target.name}.part")
    version = _version_file(part)
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
            remedy = "--from=FOLDER takes it from there"
            if kept and version.is_file():
                remedy = f"{kept} bytes are kept, the same command goes on there"
            raise DataError(f"cannot be fetched: {problem}; {remedy}", url)
    with atomic.readable_errors(target):
        os.replace(part, target)
        version.unlink(missing_ok=True)


def _receive(url: str, part: Path) -> bool:
    """Appends what is missing; returns whether the file is now whole."""
    version = _version_file(part)
    start = _size(part) if version.is_file() else 0
    going_on = {"Range": f"bytes={start}-", "If-Range": version.read_text(encoding="latin-1")} if start else {}
    request = urllib.request.Request(url, headers=going_on)  # noqa: S310  (ours)
    try:
        with urllib.request.urlopen(request, timeout=TIMEOUT_S) as response:  # noqa: S310
            if response.status != _PARTIAL:  # the server sends the file from its beginning
                start = 0
            left = response.headers["Content-Length"]
            total = None if left is None else start + int(left)
            with atomic.readable_errors(part):
                file = part.open("ab" if start else "wb")
                if not start:  # what was there is gone: it had another version
                    _keep_version(response.headers, version)
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


def _version_file(part: Path) -> Path:
    return part.with_name(f"{part.name}.version")


def _keep_version(headers: http.client.HTTPMessage, path: Path) -> None:
    """Writes what If-Range may name: an ETag that is not weak, else the time of the last change."""
    tag = headers.get("ETag", "")
    version = headers.get("Last-Modified", "") if tag.startswith("W/") or not tag else tag
    if version:
        path.write_text(version, encoding="latin-1")
    else:
        path.unlink(missing_ok=True)


def _bar(url: str, start: int, total: int | None) -> tqdm:
    """Returns a progress bar, which is silent where there is no terminal."""
    return tqdm(desc=url.rsplit("/", 1)[-1], initial=start, total=total, unit="B", unit_scale=True, disable=None)


def _size(path: Path) -> int:
    return path.stat().st_size if path.is_file() else 0
