"""Scripts of a page: Vega with Vega-Lite, bundled by vl-convert, and live.js.

Bundling takes 1.5 s. The bundle is kept in the user's cache folder, with its digest in the first line.
"""

from __future__ import annotations

import base64
import contextlib
import functools
import hashlib
import os
from pathlib import Path

from bert_tf.errors import BertError
from bert_tf.io import atomic, files

_EXPORT = "window.vegaEmbed = vegaEmbed;"


def live() -> str:
    return _beside("live.js")


@functools.cache
def vega() -> str:
    """The rendering script, after the notices that its licences require."""
    return f"/*\n{_beside('notices.txt')}*/\n{_bundle()}"


def _beside(name: str) -> str:
    return (Path(__file__).parent / name).read_text(encoding="utf-8")


def _bundle() -> str:
    import vl_convert

    cache = Path(os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache"))
    path = cache / "bert_tf" / f"vega-{vl_convert.__version__}.js"  # type: ignore[attr-defined]  # not in its stubs
    cached = None if files.unsafe(path) else _read(path)  # the page runs it
    if cached is not None:
        return cached
    packed = vl_convert.javascript_bundle(_EXPORT).replace("</script", "<\\/script")
    if path.is_absolute():  # a user without a home has no cache
        with contextlib.suppress(BertError):  # bundled again next time
            atomic.make_folder(path.parent, mode=files.SAFE_FOLDER)
            with atomic.replacing(path, follows=False) as temporary:
                temporary.touch(mode=0o644)  # not to be `unsafe`, whatever the umask
                temporary.write_text(f"{_digest(packed).hex()}\n{packed}", encoding="utf-8")
    return packed


def source(script: str) -> str:
    """The hash of a script for the page's content security policy."""
    return f"'sha256-{base64.b64encode(_digest(script)).decode()}'"


def _read(path: Path) -> str | None:
    try:
        digest, _, packed = path.read_text(encoding="utf-8").partition("\n")
    except (OSError, ValueError):
        return None
    return packed if digest == _digest(packed).hex() else None


def _digest(text: str) -> bytes:
    return hashlib.sha256(text.encode()).digest()
