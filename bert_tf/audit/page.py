"""Writes the page of an audit: a single file that loads nothing and runs only its own script."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from bert_tf.audit import findings
from bert_tf.audit.findings import Finding
from bert_tf.report import scripts

_MOST = 1000  # findings of a kind; the table has all


def render(
    task: str, results: Sequence[Finding], summary: Sequence[Sequence[str]], notes: Sequence[str], separator: str
) -> str:
    import jinja2
    import markupsafe

    folder = Path(__file__).parent
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(folder),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    script = (folder / "page.js").read_text(encoding="utf-8")
    kinds = {kind: [one for one in results if one.problem == kind] for kind in findings.KINDS}
    text = environment.get_template("page.html.j2").render(
        task=task,
        summary=summary,
        notes=notes,
        columns=findings.COLUMNS,
        kinds={kind: (len(of_kind), findings.KINDS[kind]) for kind, of_kind in kinds.items()},
        rows=[one.cells(separator) for of_kind in kinds.values() for one in of_kind[:_MOST]],
        most=_MOST,
        script=markupsafe.Markup(script),  # none of it is from the data
        script_source=scripts.source(script),
    )
    return text.encode("utf-8", "replace").decode()
