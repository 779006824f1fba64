"""docs/quickstart.ipynb, run from its first cell to its last."""

import re

import nbformat
import pytest

from tests.library.notebook import NOTEBOOK, executed, outputs_of

LOCAL = re.compile(r"/(tmp|root|home|work|Users)/|Traceback")


def test_the_notebook_is_kept_with_its_outputs():
    """So that it can be read without running it; nothing of them tells where it ran, and widgets would be empty."""
    notebook = nbformat.read(NOTEBOOK, as_version=4)
    nbformat.validate(notebook)
    assert len(outputs_of(notebook)) >= 8
    assert not [output for output in outputs_of(notebook) if LOCAL.search(str(output)) or "widget" in str(output)]
    assert NOTEBOOK.stat().st_size < 150_000


@pytest.mark.slow
def test_the_quickstart_ends_in_a_model_and_its_report(tmp_path, monkeypatch):
    monkeypatch.setenv("PYTHONPATH", str(NOTEBOOK.parents[1]))
    monkeypatch.delenv("TF_CPP_MIN_LOG_LEVEL", raising=False)  # a test may have set it; the library has to
    for variable in ("GLUE_DIR", "BERT_BASE_DIR"):
        monkeypatch.delenv(variable, raising=False)
    notebook = executed(tmp_path)
    lines = [line for output in outputs_of(notebook) for line in output.get("text", "").splitlines()]
    values = " ".join(output.data.get("text/plain", "") for output in outputs_of(notebook) if "data" in output)
    match = re.search(r"(\d+) suspects, (\d+) of 20 wrong labels among them", values)
    assert int(match[2]) >= 10
    page = notebook.cells[-1]
    assert "<iframe srcdoc=" in page.outputs[0].data["text/html"]
    assert any("the run is in out/quickstart, its report in out/quickstart/report.html" in line for line in lines)
    assert not [line for line in lines if "tensorflow" in line.lower() or "deprecated" in line]
