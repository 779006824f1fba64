"""The table of a run's folder, and what the documentation says of it."""

import ast
import itertools
import re
from pathlib import Path

from bert_tf import run_layout
from bert_tf.run_layout import OF_RESULTS, OF_TEXT, of_training
from bert_tf.tasks import families

ROOT = Path(__file__).resolve().parents[1]
# Or how they begin; without folders, which have the names of other things, and without what published checkpoints have too.
OWNED = {name.partition("*")[0] for name in run_layout.names((*of_training(), *OF_RESULTS)) if "/" not in name}
OWNED -= {run_layout.VOCABULARY, run_layout.TOKENIZER, run_layout.CONFIG, run_layout.LIST}
OWNED -= {"memory_trace_step"}  # a flag too

PAGE = (ROOT / "docs" / "commands.md").read_text(encoding="utf-8")
SECTION = PAGE.partition("## The output folder")[2].partition("\n## ")[0]
ROWS = {
    tuple(re.findall("`(.+?)`", names)): holds for names, holds in re.findall(r"^\| (`.+) \| (.+) \|$", SECTION, re.MULTILINE)
}


PARTS = {part.shown or part.names: part.holds for part in (*of_training(), *OF_TEXT, *OF_RESULTS)}


def test_every_part_is_documented():
    assert {names: ROWS.get(names) for names in PARTS} == PARTS


def test_every_file_of_the_documentation_is_a_part_or_of_a_family():
    known = {*itertools.chain.from_iterable(PARTS), *families.file_patterns()}
    assert {name for names in ROWS for name in names} == known


def test_no_other_module_names_a_file_by_itself():
    for path in (ROOT / "bert_tf").rglob("*.py"):
        if path.parts[-3] == "extensions":  # each names its own
            continue
        text = path.read_text()
        if path.name != "run_layout.py" and any(name in text for name in OWNED):
            assert not OWNED & {node.value for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Constant)}, path


def test_no_file_is_in_two_parts_and_a_pattern_has_a_name_for_a_step():
    names = [*run_layout.names(of_training()), *run_layout.names(OF_RESULTS)]
    assert sorted(set(names)) == sorted(names)
    assert run_layout.of_step("memory_trace_step*.txt", 12) == "memory_trace_step12.txt"
