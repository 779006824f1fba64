"""The picture of docs/architecture.md, from the code: python -m tests.architecture_page writes it into the page."""

import ast
from collections.abc import Iterator
from pathlib import Path

from tests.test_architecture import LAYERS, PACKAGE, ROOT

PAGE = ROOT / "docs" / "architecture.md"
_BEGIN, _END = "```\n", "```\n"


def picture() -> str:
    """Returns the rooms from the top down, each with the first line of its docstring; a rule between layers."""
    return "\n".join(_lines())


def _lines() -> Iterator[str]:
    width = max(len(room) for row in LAYERS for room in row) + 2
    for row in reversed(LAYERS):
        yield "─" * 72
        yield from (f"{room:<{width}}{_first_line(room)}" for room in row)
    yield "─" * 72


def _first_line(room: str) -> str:
    path = PACKAGE / room / "__init__.py" if (PACKAGE / room).is_dir() else PACKAGE / f"{room}.py"
    return (ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or "").partition("\n")[0].rstrip(".")


def parts(path: Path = PAGE) -> tuple[str, str, str]:
    """Returns the page before the picture, the picture, and what follows."""
    before, _, rest = path.read_text(encoding="utf-8").partition(_BEGIN)
    shown, _, after = rest.partition(_END)
    return before + _BEGIN, shown, _END + after


if __name__ == "__main__":
    before, _, after = parts()
    PAGE.write_text(f"{before}{picture()}\n{after}", encoding="utf-8")
