"""Settings as keyword arguments, so that help, completion and inspection show names and defaults; Beam as an argument."""

from __future__ import annotations

import contextlib
import functools
import inspect
import keyword
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, TypeVar, Union, cast

from bert_tf import extension, versions
from bert_tf.errors import BertError, FlagError
from bert_tf.io import files
from bert_tf.settings import Setting, path_of, settings_of

F = TypeVar("F", bound=Callable[..., Any])
Arguments = Union[bool, Sequence[str]]  # of Beam; True for none, False without Beam
Written = Union[Path, str]  # a file; a string if it is on another file system


class Beam(NamedTuple):
    """How Apache Beam runs a job."""

    arguments: Sequence[str]  # Beam's own flags
    begin: Callable[[], Mapping[str, str]]  # start-up of a worker, returns its environment; pickled


def takes(settings: type | Iterable[Setting] = ()) -> Callable[[F], F]:
    """Decorates a function with `**settings`: its signature lists each setting, and path arguments are checked."""
    rows = tuple(settings_of(settings) if isinstance(settings, type) else settings)

    def decorated(function: F) -> F:
        signature = inspect.signature(function)
        parameters = [p for p in signature.parameters.values() if p.kind is not inspect.Parameter.VAR_KEYWORD]
        taken = {parameter.name for parameter in parameters}
        more = [_parameter(row) for row in rows if row.name not in taken and not keyword.iskeyword(row.name)]
        places = {parameter.name: parameter for parameter in parameters if "PathLike" in str(parameter.annotation)}

        @functools.wraps(function)
        def checked(*arguments: Any, **keyword_arguments: Any) -> Any:
            bound = signature.bind(*arguments, **keyword_arguments)
            for name in places.keys() & bound.arguments.keys():
                bound.arguments[name] = _usable(places[name], bound.arguments[name])
            with needing_tensorflow():
                return function(*bound.args, **bound.kwargs)

        checked.__signature__ = signature.replace(parameters=[*parameters, *more])  # type: ignore[attr-defined]
        return cast(F, checked)

    return decorated


@contextlib.contextmanager
def needing_tensorflow() -> Iterator[None]:
    """Raises BertError, which says what to install, for what imports TensorFlow where it is missing."""
    try:
        yield
    except ModuleNotFoundError as error:
        if not versions.lacks_tensorflow(error):
            raise
        raise BertError(versions.without_tensorflow(sys.version_info[:2])) from error


def _usable(parameter: inspect.Parameter, value: Any) -> Any:
    if value is None and parameter.default is None:
        return None
    several = parameter.kind is inspect.Parameter.VAR_POSITIONAL or "Iterable" in str(parameter.annotation)
    if several and isinstance(value, Iterable) and not isinstance(value, (str, bytes)):
        return tuple(path_of(parameter.name, item) for item in value)
    return path_of(parameter.name, value)


def runner(beam: Arguments) -> Beam | None:
    """Returns how Beam runs a job, None if it does not; raises FlagError if the arguments are a single string."""
    if isinstance(beam, str):
        raise FlagError(f"--beam={beam!r}: expected a list of arguments")
    return None if beam is False else Beam(() if beam is True else tuple(beam), _begin_worker)


def run_pipeline(name: str, job: Any, by: Beam) -> Any:
    """Runs a command as a pipeline; raises BertError if the extension that does was deleted."""
    if name not in extension.named("pipelines"):
        raise BertError("Beam needs the extension cluster, which is missing (docs/extensions.md)")
    return extension.load(extension.named("pipelines")[name])(job, by)


def written(names: Iterable[str]) -> tuple[Written, ...]:
    return tuple(name if files.has_scheme(name) else Path(name) for name in names)


def _begin_worker() -> Mapping[str, str]:
    return os.environ


def _parameter(row: Setting) -> inspect.Parameter:
    kind = row.kind.__name__ + (" | None" if row.default is None else "")
    return inspect.Parameter(row.name, inspect.Parameter.KEYWORD_ONLY, default=row.default, annotation=kind)
