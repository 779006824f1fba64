"""Rules of style that no linter holds."""

import ast
import inspect
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import bert_tf

ROOT = Path(__file__).parents[1]

# Classes and functions that programs outside the package extend, beside what `bert_tf` exports.
EXTENDED = {
    "batch/session.py": {"Session"},
    "tasks/base.py": {"Splits", "Task", "Family"},
    "tasks/families.py": {"register"},
    "tasks/rows_task.py": {"RowsTask"},
    "modeling/heads/base.py": {"Head"},
    "modeling/positions.py": {"Positions", "scores"},
    "modeling/heads/registry.py": {"register"},
}
SECTION = re.compile(r"^\s*(Args|Returns|Yields|Raises|Attributes):$", re.MULTILINE)


@pytest.fixture(scope="module")
def trees():
    return {path.relative_to(ROOT): ast.parse(path.read_text()) for path in sorted((ROOT / "bert_tf").rglob("*.py"))}


def exported() -> Iterator[tuple[str, object]]:
    """Yields what `import bert_tf` offers: functions, classes and their public methods."""
    for name in bert_tf.__all__:
        value = getattr(bert_tf, name)
        yield name, value
        for method, function in vars(value).items() if inspect.isclass(value) else ():
            if inspect.isfunction(function) and not method.startswith("_"):
                yield f"{name}.{method}", function


def test_what_the_package_exports_is_documented():
    assert [name for name, value in exported() if not inspect.getdoc(value)] == []


def test_arguments_of_exported_functions_are_documented():
    for name, value in exported():
        if inspect.isfunction(value) and len(set(inspect.signature(value).parameters) - {"self"}) > 1:
            assert "Args:" in value.__doc__, name


def with_sections(tree: ast.Module, public: set[str]) -> Iterator[str]:
    """Yields internal definitions whose docstrings have the sections of a public one."""
    for node in tree.body:
        if getattr(node, "name", None) not in public:
            for one in ast.walk(node):
                text = ast.get_docstring(one) if isinstance(one, (ast.ClassDef, ast.FunctionDef)) else None
                if text and SECTION.search(text):
                    yield one.name


def test_docstrings_of_internal_definitions_have_no_sections(trees):
    places = {f"bert_tf/{path}": names for path, names in EXTENDED.items()}
    for name, module in bert_tf._MODULES.items():
        for ending in (".py", "/__init__.py"):
            places.setdefault(module.replace(".", "/") + ending, set()).add(name)
    names_by_path = {path: list(with_sections(tree, places.get(path.as_posix(), set()))) for path, tree in trees.items()}
    assert {str(path): names for path, names in names_by_path.items() if names} == {}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('def pair(a):\n  """Pairs.\n\n  Args:\n    a: one.\n  """', ["pair"]),
        ('def public(a):\n  """Pairs.\n\n  Args:\n    a: one.\n  """', []),
        ('class Pair:\n  def put(self, a):\n    """Puts.\n\n    Raises:\n      E: never.\n    """', ["put"]),
        ('def pair(a, b):\n  """Pairs a and b."""', []),
    ],
)
def test_notices_sections(text, expected):
    assert list(with_sections(ast.parse(text), {"public"})) == expected


def test_nobody_calls_functions_of_absl_that_configure_the_log_of_a_program(trees):
    """They add a handler to the root logger where it has none; `log_form.log` does not."""
    calls = re.compile(r"^(absl_)?logging\.(debug|info|warning|error|exception|log|vlog|fatal)$")

    def called(tree):
        return {ast.unparse(node) for node in ast.walk(tree) if isinstance(node, ast.Attribute)}

    def uses_absl(tree):
        return any(isinstance(node, ast.ImportFrom) and node.module == "absl" for node in ast.walk(tree))

    assert not [str(path) for path, tree in trees.items() if uses_absl(tree) and any(map(calls.match, called(tree)))]


def test_no_dataclass_has_a_default_that_python_3_11_alone_refuses(trees):
    """It has no hash for a mapping proxy, and takes what has none for mutable; CI runs the oldest Python and the newest."""
    refused = []
    for path, tree in trees.items():
        constants = [node for node in tree.body if isinstance(node, (ast.Assign, ast.AnnAssign)) and node.value]
        proxies = {
            ast.unparse(node.targets[0] if isinstance(node, ast.Assign) else node.target)
            for node in constants
            if "MappingProxyType(" in ast.unparse(node.value)
        }
        for node in ast.walk(tree):
            if isinstance(node, ast.ClassDef) and "dataclass" in " ".join(map(ast.unparse, node.decorator_list)):
                values = {
                    one.lineno: ast.unparse(one.value) for one in node.body if isinstance(one, ast.AnnAssign) and one.value
                }
                refused += [
                    f"{path}:{line}" for line, value in values.items() if value in proxies or "MappingProxyType(" in value
                ]
    assert refused == []
