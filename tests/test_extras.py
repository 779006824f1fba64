"""Optional packages: one list for the installer and for messages."""

from __future__ import annotations

import ast
from pathlib import Path

from bert_tf import extras

PYPROJECT = Path(__file__).parents[1] / "pyproject.toml"


def test_the_groups_are_those_of_the_project():
    section = PYPROJECT.read_text().partition("[project.optional-dependencies]\n")[2].partition("\n[")[0]
    rows = [line.partition(" = ") for line in section.splitlines() if " = " in line and not line.startswith("#")]
    assert {name: tuple(ast.literal_eval(value)) for name, _, value in rows} == extras.EXTRAS


def test_a_group_is_installed_by_its_packages():
    assert extras.install("onnx") == "pip install 'onnx>=1.16,<1.19' 'onnxruntime>=1.17'"
