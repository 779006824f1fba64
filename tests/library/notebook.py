"""docs/quickstart.ipynb: python -m tests.library.notebook runs it, and stores the outputs in it."""

import re
import shutil
import tempfile
from pathlib import Path

import nbformat
from nbclient import NotebookClient

ROOT = Path(__file__).resolve().parents[2]
NOTEBOOK = ROOT / "docs" / "quickstart.ipynb"
LONGEST = 20_000  # letters of an output that is stored; the report has a million
KEPT = {"text/plain", "text/html", "image/svg+xml"}


def executed(folder: Path) -> nbformat.NotebookNode:
    """Runs the notebook in a folder with the script that it needs."""
    shutil.copy(ROOT / "docs" / "tickets.py", folder)
    notebook = nbformat.read(NOTEBOOK, as_version=4)
    NotebookClient(notebook, timeout=900, resources={"metadata": {"path": str(folder)}}).execute()
    return notebook


def outputs_of(notebook: nbformat.NotebookNode) -> list[nbformat.NotebookNode]:
    return [output for cell in notebook.cells for output in cell.get("outputs", ())]


def stored(notebook: nbformat.NotebookNode, folder: Path) -> nbformat.NotebookNode:
    """Leaves out widgets, standard error, times and the folder that it ran in, and outputs that are too long to store."""
    for cell in notebook.cells:
        cell.get("metadata", {}).pop("execution", None)
        if cell.cell_type == "code":
            cell.outputs = [output for output in cell.outputs if _is_kept(output)]
            for output in cell.outputs:
                _shorten(output, folder)
    return notebook


def _is_kept(output: nbformat.NotebookNode) -> bool:
    return output.output_type != "stream" or output.name == "stdout"


def _shorten(output: nbformat.NotebookNode, folder: Path) -> None:
    if output.output_type == "stream":
        output.text = output.text.replace(f"{folder}/", "")
        return
    for kind, data in list(output.data.items()):
        if kind not in KEPT or len(data) > LONGEST:
            del output.data[kind]
        else:
            output.data[kind] = re.sub(rf"{re.escape(str(folder))}/", "", data)


def main() -> None:
    """Stores the outputs."""
    with tempfile.TemporaryDirectory() as folder:
        nbformat.write(stored(executed(Path(folder)), Path(folder)), NOTEBOOK)


if __name__ == "__main__":
    main()
