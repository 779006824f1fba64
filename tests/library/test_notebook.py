"""docs/quickstart.ipynb, run from its first cell to its last."""

from __future__ import annotations

from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient

ROOT = Path(__file__).resolve().parents[2]
NOTEBOOK = ROOT / "docs" / "quickstart.ipynb"
MAJORITY = 145 / 220  # of the sample's dev split


def outputs_of(notebook):
    return [output for cell in notebook.cells for output in cell.get("outputs", ())]


def test_the_notebook_is_kept_without_outputs():
    notebook = nbformat.read(NOTEBOOK, as_version=4)
    nbformat.validate(notebook)
    assert outputs_of(notebook) == []


@pytest.mark.slow
def test_the_quickstart_ends_in_a_model_and_its_report(tmp_path, monkeypatch):
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    monkeypatch.delenv("TF_CPP_MIN_LOG_LEVEL", raising=False)  # a test may have set it; the library has to
    for variable in ("GLUE_DIR", "BERT_BASE_DIR"):
        monkeypatch.delenv(variable, raising=False)
    notebook = nbformat.read(NOTEBOOK, as_version=4)
    notebook.cells.append(nbformat.v4.new_code_cell(f"assert result.metrics['accuracy'] > {MAJORITY}, result.metrics"))
    NotebookClient(notebook, timeout=600, resources={"metadata": {"path": str(tmp_path)}}).execute()
    *_, page, _ = (cell for cell in notebook.cells if cell.cell_type == "code")
    assert "<iframe srcdoc=" in page.outputs[0].data["text/html"]
    lines = [line for output in outputs_of(notebook) for line in output.get("text", "").splitlines()]
    assert any("the run is in out/quickstart, its page in out/quickstart/report.html" in line for line in lines)
    assert not [line for line in lines if "tensorflow" in line.lower() or "deprecated" in line]
