"""Writes the page of an audit: a single file that loads nothing and runs only its own script."""

from __future__ import annotations

import itertools
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from bert_tf.extensions.audit import findings
from bert_tf.extensions.audit.findings import Finding
from bert_tf.head_spec import CLASSIFICATION
from bert_tf.io import files
from bert_tf.tasks.base import Family

_DIGEST = re.compile('name="table-sha256" content="([0-9a-f]{64})"')
_HEAD = 1 << 12  # bytes that hold the digest
_MOST = 1000  # findings of a kind; the table has all


def render(name: str, family: Family, ranked: Sequence[Finding], notes: Sequence[str], separator: str, *, digest: str) -> str:
    """Returns the page of the data called `name`; by `digest`, that of the table, `written_with` knows an edited one."""
    import jinja2
    import markupsafe

    from bert_tf.extensions.report import scripts

    names = ("page.html.j2", "page.js", "page.css")
    template, script, style = ((Path(__file__).parent / name).read_text(encoding="utf-8") for name in names)
    kinds = itertools.groupby(ranked, key=lambda finding: finding.problem)
    shown = [finding for _, kind in kinds for finding in itertools.islice(kind, _MOST)]
    counts = findings.counts(ranked)
    text = jinja2.Template(template, autoescape=True, undefined=jinja2.StrictUndefined, trim_blocks=True).render(
        name=name,
        digest=digest,
        notes=notes,
        kinds=[(kind, counts[kind], meaning) for kind, meaning in findings.KINDS.items()],
        problems=[kind for kind, count in counts.items() if count],
        splits=dict.fromkeys(finding.row.split for finding in shown),
        total=len(ranked),
        most=_MOST,
        labels=family.labels,
        only_labels=family.kind == CLASSIFICATION,
        may_have_no_label=family.may_have_no_label,
        findings=[_row(finding, separator) for finding in shown],
        style=markupsafe.Markup(style),
        script=markupsafe.Markup(script),  # none of it is from the data
        script_source=scripts.source(script),
    )
    return text.encode("utf-8", "replace").decode()


def _row(finding: Finding, separator: str) -> dict[str, Any]:
    """Cells of the table by name, and of a similar row its texts; long texts are cut."""
    from bert_tf.extensions.report.outcome import cut

    cells = dict(zip(findings.COLUMNS, finding.cells(separator)))
    texts = {name: cut(cells[name]) for name in ("text", "text_b")}
    similar = map(cut, finding.other.texts) if finding.other and finding.problem in findings.NEAR else ()
    return {**cells, **texts, "is_train": finding.row.is_train, "similar": list(similar)}


def written_with(page: Path) -> str:
    """Returns the digest of the table that a page was written with; empty if the page is missing or another."""
    try:
        match = _DIGEST.search(files.read_begin(page, _HEAD).decode(errors="replace"))
    except OSError:
        return ""
    return match[1] if match else ""
