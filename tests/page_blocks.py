"""The blocks of code on the pages of the documentation, and a process that runs those of one page in their order.

A block without a mark is run: Python if it parses as Python, otherwise bash. Marks are HTML comments, which readers do not see:

    <!-- given: out/mrpc texts.txt -->        what the page takes for granted; `tests/test_docs_blocks.py` makes it
    <!-- output -->                           before a block: not code, but what code prints or reads
    <!-- not run: needs a GPU -->             before a block: why it is not run
    <!-- not run on this page: needs a GPU -->
    <!-- ends with status 1 -->              before a block: it is run
"""

import ast
import dataclasses
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PAGES = {str(path.relative_to(ROOT)): path for path in (ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md")))}
_MARK = re.compile(r"<!-- (?:(output)|not run: (.+)|ends with status (\d+)) -->")
_BASE = "uncased_L-12_H-768_A-12"
# What people have, by the variables of the pages.
_FOLDERS = {"BERT_BASE_DIR": _BASE, "BERT_LARGE_DIR": _BASE, "GLUE_DIR": "glue"}
_FOLDERS |= {"SQUAD_DIR": "squad", "SWAG_DIR": "swag", "CONLL_DIR": "conll"}
_ENVIRONMENT = ".exported"  # variables that a block leaves to the next one


@dataclasses.dataclass(frozen=True)
class Block:
    """Lines of code or output."""

    line: int  # of the page, at which it begins
    text: str
    left_out: str = ""  # why it is not run
    status: int = 0  # with which it ends

    @property
    def is_python(self) -> bool:
        """Whether it is Python; a shell's command is not, except for a single word."""
        try:
            return bool(ast.parse(self.text).body)
        except SyntaxError:
            return False


def given(page: Path) -> list[str]:
    """Returns the names that a page takes for granted."""
    return " ".join(re.findall(r"<!-- given: (.+) -->", page.read_text(encoding="utf-8"))).split()


def blocks(page: Path) -> Iterator[Block]:
    """Yields the blocks of a page, indented ones and fenced ones."""
    text = page.read_text(encoding="utf-8")
    whole = re.search(r"<!-- not run on this page: (.+) -->", text)
    mark, status, lines, fence, start = "", 0, [], None, 0
    for number, line in enumerate([*text.splitlines(), "end"], start=1):
        opens = line.startswith("```")
        if fence is None and not opens and (line.startswith("    ") or (lines and not line)):
            start = start if lines else number
            lines.append(line[4:])
        elif fence is not None and not opens:
            lines.append(line)
        else:
            if lines:
                other = f"{fence or 'a drawing'}" if fence not in (None, "bash", "python") else ""
                yield Block(start, "\n".join(lines).strip("\n"), mark or (whole.group(1) if whole else other), status)
                mark, status = "", 0
            lines = []
            if opens:
                fence, start = (line[3:], number + 1) if fence is None else (None, 0)
            elif line:
                matched = _MARK.fullmatch(line)
                mark = matched.group(1) or matched.group(2) or "" if matched else ""
                status = int(matched.group(3) or 0) if matched else 0


def run(page: Path, machine: str) -> None:
    """Runs the blocks of a page in the working directory; SystemExit if one fails.

    `machine` is the folder of the models and data that people have; the pages call it /path/to.
    """
    folders = "".join(f"{name}={machine}/{folder}\n" for name, folder in _FOLDERS.items())
    names: dict[str, object] = {"__name__": "__main__"}
    for block in blocks(page):
        if block.left_out:
            continue
        place = f"{page.name}:{block.line}"
        print(f"== {place}\n{block.text}", flush=True)  # noqa: T201
        if block.is_python:
            exec(compile("\n" * (block.line - 1) + block.text, str(page), "exec"), names)  # noqa: S102
            continue
        text = block.text.replace("/path/to", machine)
        lines = f"{folders}[ ! -e {_ENVIRONMENT} ] || . ./{_ENVIRONMENT}\n{text}\nexport -p > {_ENVIRONMENT}"
        status = subprocess.run(["bash", "-euo", "pipefail", "-c", lines], check=False).returncode
        if status != block.status:
            sys.exit(f"{place} ends with status {status}, expected {block.status}")


if __name__ == "__main__":
    sys.path[0] = os.getcwd()
    run(Path(sys.argv[1]), sys.argv[2])
