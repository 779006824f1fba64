"""What `tests/stubs` says of libraries without types: each name exists, and takes the arguments that it is said to take."""

import ast
import functools
import importlib
import inspect
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import tensorflow as tf

STUBS = Path(__file__).parent / "stubs"
OF_GRAPHS = {"tensorflow.Tensor.consumers"}  # the class has it where it is the tensor of a graph
MODULES = [path for path in sorted(STUBS.rglob("*.pyi")) if path.stem != "_values"]


def name_of(path: Path) -> str:
    return ".".join(path.relative_to(STUBS).with_suffix("").parts).removesuffix(".__init__")


def reached(name: str) -> Any:
    """Returns what code reaches as `tf.x.y`, which is not always what can be imported by that name."""
    try:
        library, *names = name.split(".")
        return functools.reduce(getattr, names, importlib.import_module(library))
    except AttributeError:
        return importlib.import_module(name)


def wrong(owner: Any, body: list[ast.stmt], where: str) -> Iterator[str]:
    for node in body:
        if not isinstance(node, (ast.ClassDef, ast.FunctionDef)) or f"{where}.{node.name}" in OF_GRAPHS:
            continue
        actual = getattr(owner, node.name, None)
        if actual is None:
            yield f"{where}: no {node.name}"
        elif isinstance(node, ast.ClassDef):
            yield from wrong(actual, node.body, f"{where}.{node.name}")
        elif not fits(node, actual):
            yield f"{where}.{node.name}: {ast.unparse(node.args)}, in truth {inspect.signature(actual)}"


def fits(said: ast.FunctionDef, actual: Any) -> bool:
    try:
        parameters = inspect.signature(actual).parameters
    except ValueError:  # not written in Python
        return True
    if any(parameter.kind is parameter.VAR_KEYWORD for parameter in parameters.values()):
        return True
    if "object" in parameters and parameters["object"].kind is inspect.Parameter.POSITIONAL_ONLY:  # C's name for a message
        return True
    positional = [arg.arg for arg in said.args.args if arg.arg not in ("self", "cls")]
    inner = [name for name in parameters if name != "self"]
    return positional == inner[: len(positional)] and {arg.arg for arg in said.args.kwonlyargs} <= {*inner}


@pytest.mark.parametrize("path", MODULES, ids=name_of)
def test_says_what_the_library_has(path):
    body = ast.parse(path.read_text()).body
    public = [node for node in body if not getattr(node, "name", "").startswith("_")]
    assert not list(wrong(reached(name_of(path)), public, name_of(path)))


@pytest.mark.parametrize(
    ("stub", "message"),
    [("def crop(x): ...", "no crop"), ("def gather(params, axis): ...", "in truth"), ("def exp(*, y): ...", "in truth")],
)
def test_notices_what_tensorflow_does_not_have(stub, message):
    (problem,) = wrong(tf, ast.parse(stub).body, "tensorflow")
    assert message in problem
