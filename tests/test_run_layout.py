"""The table of a run's folder, and what the documentation says of it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from bert_tf import run_layout
from bert_tf.run_layout import OF_RESULTS, OF_TRAINING
from bert_tf.tasks import families

PAGE = (Path(__file__).resolve().parents[1] / "docs" / "commands.md").read_text(encoding="utf-8")
SECTION = PAGE.partition("## The output folder")[2].partition("\n## ")[0]
ROWS = {
    tuple(re.findall("`(.+?)`", names)): holds for names, holds in re.findall(r"^\| (`.+) \| (.+) \|$", SECTION, re.MULTILINE)
}


@pytest.mark.parametrize("part", [*OF_TRAINING, *OF_RESULTS], ids=lambda part: part.names[0])
def test_every_part_is_documented(part):
    assert ROWS[part.names] == part.holds


def test_every_file_of_the_documentation_is_a_part_or_of_a_family():
    known = {*run_layout.names(OF_TRAINING), *run_layout.names(OF_RESULTS), *families.file_patterns()}
    assert {name for names in ROWS for name in names} == known


def test_no_file_is_in_two_parts():
    names = [*run_layout.names(OF_TRAINING), *run_layout.names(OF_RESULTS)]
    assert sorted(set(names)) == sorted(names)


def test_a_pattern_has_a_name_for_a_step():
    assert run_layout.of_step(run_layout.MEMORY_TRACE, 12) == "memory_trace_step12.txt"
