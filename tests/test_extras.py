"""Optional packages: one list for the installer, the messages and the docs."""

import re
import shlex
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from bert_tf import extras, versions
from tests import page_blocks

ROOT = Path(__file__).resolve().parents[1]
EXTRAS = extras.by_name()
KNOWN = {requirement for requirements in EXTRAS.values() for requirement in requirements}
DEVELOPMENT = (ROOT / "requirements-dev.txt").read_text(encoding="utf-8").splitlines()


def test_a_wheel_has_the_requirements_of_the_project(monkeypatch):
    rows = [f"{row} ; extra == '{extra}'" for extra, requirements in EXTRAS.items() for row in requirements]
    base = extras.base()
    monkeypatch.setattr(extras, "_PROJECT", ROOT / "none" / "pyproject.toml")
    monkeypatch.setattr(extras.metadata, "requires", lambda _: [*base.values(), *rows])
    assert extras.by_name() == EXTRAS
    assert extras.base() == base
    assert base["jinja2"] == "jinja2>=3.1"
    assert len(EXTRAS["serve"]) == 4


@pytest.mark.parametrize(
    ("installed", "ending"),
    [(("tensorflow", "2.15.1"), " 'tensorflow==2.15.1'"), (("tensorflow-cpu", "2.21"), " 'tensorflow-cpu==2.21'"), (None, "")],
)
def test_a_group_is_installed_by_its_packages_beside_the_tensorflow_that_is_there(monkeypatch, installed, ending):
    monkeypatch.setattr(versions, "installed_tensorflow", lambda: installed)
    assert extras.install("parquet") == f"pip install 'pyarrow>=15,<26'{ending}"


def test_tests_run_with_the_versions_that_users_get():
    chosen = {Requirement(line).name: line for line in DEVELOPMENT if line and line[0] not in "#-"}
    wanted = {Requirement(line).name: line for line in KNOWN}
    assert {name: line for name, line in wanted.items() if chosen.get(name) != line} == {
        "nvtx": "nvtx>=0.2,<1",
        "mlflow-skinny": "mlflow-skinny>=2.15,<4",  # and wandb: tests/extensions/track has doubles
        "wandb": "wandb>=0.18,<1",
    }


def test_optional_packages_are_bounded_on_both_sides():
    """A major version that nobody tried may not run, as pyarrow 26 beside NumPy 1, which it does not declare."""
    assert [line for line in KNOWN if not {">=", "<"} <= {one.operator for one in Requirement(line).specifier}] == []


@pytest.mark.parametrize("page", page_blocks.PAGES.values(), ids=page_blocks.PAGES)
def test_the_docs_name_the_same_versions(page):
    lines = re.findall(r"pip install [^`#\n]*", page.read_text(encoding="utf-8"))
    for word in (
        word for line in lines for word in shlex.split(line) if re.search(r"[<>\[]", word)
    ):  # '.[onnx]', 'pyarrow>=15'
        match = re.fullmatch(r".*?\[([a-z,]+)\]", word)
        assert set(match.group(1).split(",")) <= {*EXTRAS, "and-cuda"} if match else word in KNOWN
