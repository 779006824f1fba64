"""Commands that the documentation shows are commands that are understood."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from bert_tf.commands import classifier_flags, devices
from tests import architecture_page

DEVICES = (Path(__file__).resolve().parents[1] / "docs" / "devices.md").read_text(encoding="utf-8")
COMMANDS = re.findall(r"^    python (.+)$", DEVICES, re.MULTILINE)
PARSERS = {"run_classifier.py": classifier_flags.parse, "-m bert_tf devices": devices.parse}


def test_the_devices_page_has_commands_of_both_kinds():
    assert {kind for kind in PARSERS if any(line.startswith(kind) for line in COMMANDS)} == set(PARSERS)


@pytest.mark.parametrize("line", COMMANDS)
def test_a_command_of_the_devices_page_is_understood(line):
    (kind,) = (kind for kind in PARSERS if line.startswith(kind))
    PARSERS[kind](["program", *shlex.split(line.removeprefix(kind))])


def test_every_flag_that_the_devices_page_mentions_exists():
    known = {row.name for rows in classifier_flags.GROUPS.values() for row in rows} | {row.name for row in devices.FLAGS}
    booleans = {f"no{row.name}" for row in classifier_flags.DEVICES if row.kind is bool}
    mentioned = set(re.findall(r"(?<![\w-])--(\w+)", DEVICES)) - {"gpus"}  # docker's
    assert mentioned <= known | booleans


def test_every_code_of_a_missing_gpu_is_on_the_devices_page():
    source = (Path(__file__).resolve().parents[1] / "bert_tf" / "runtime" / "diagnosis.py").read_text(encoding="utf-8")
    codes = set(re.findall(r'Cause\(\s*"(\w+)"', source))
    assert codes == set(re.findall(r"`(\w+)`", DEVICES.partition("| code |")[2].partition("\n\n")[0])) - {"libcuda"}


def test_the_picture_of_the_architecture_is_the_code_s():
    _, shown, _ = architecture_page.parts()
    assert shown.rstrip("\n") == architecture_page.picture()


def test_every_page_is_in_the_index():
    docs = Path(__file__).resolve().parents[1] / "docs"
    pages = {path.name for path in docs.glob("*.md")} - {"README.md"}
    assert set(re.findall(r"\]\((\w+\.md)\)", (docs / "README.md").read_text(encoding="utf-8"))) == pages
