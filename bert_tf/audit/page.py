"""Writes the page of an audit: a single file that loads nothing and runs only its own script."""

from __future__ import annotations

import itertools
import re
from collections.abc import Sequence
from pathlib import Path

from bert_tf.audit import findings
from bert_tf.audit.findings import Finding
from bert_tf.io import files
from bert_tf.report import scripts

_DIGEST = re.compile('name="table-sha256" content="([0-9a-f]{64})"')
_HEAD = 1 << 12  # bytes that hold the digest
_MOST = 1000  # findings of a kind; the table has all


def render(task: str, ranked: Sequence[Finding], summary: str, separator: str, *, digest: str) -> str:
    """Returns the page; `digest` is that of the table, by which `written_with` knows an edited one."""
    import jinja2
    import markupsafe

    template, script = ((Path(__file__).parent / name).read_text(encoding="utf-8") for name in ("page.html.j2", "page.js"))
    kinds = itertools.groupby(ranked, key=lambda one: one.problem)
    text = jinja2.Template(template, autoescape=True, undefined=jinja2.StrictUndefined, trim_blocks=True).render(
        task=task,
        digest=digest,
        summary=summary,
        columns=findings.COLUMNS,
        rows=[one.cells(separator) for _, kind in kinds for one in itertools.islice(kind, _MOST)],
        most=_MOST,
        script=markupsafe.Markup(script),  # none of it is from the data
        script_source=scripts.source(script),
    )
    return text.encode("utf-8", "replace").decode()


def written_with(page: Path) -> str:
    """Returns the digest of the table that a page was written with; empty if the page is missing or another."""
    try:
        match = _DIGEST.search(files.read_begin(page, _HEAD).decode(errors="replace"))
    except OSError:
        return ""
    return match[1] if match else ""
