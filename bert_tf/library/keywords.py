"""Settings as keyword arguments, so that help, completion and inspection show names and defaults."""

from __future__ import annotations

import inspect
import operator
from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeVar

from bert_tf.errors import FlagError
from bert_tf.settings import Setting, named

F = TypeVar("F", bound=Callable[..., Any])


def takes(settings: Iterable[Setting]) -> Callable[[F], F]:
    """Returns a decorator of functions with `**settings`: the signature names each setting in their place."""

    def decorated(function: F) -> F:
        signature = inspect.signature(function)
        own = [p for p in signature.parameters.values() if p.kind is not inspect.Parameter.VAR_KEYWORD]
        taken = {parameter.name for parameter in own}
        more = [_parameter(row) for row in settings if row.name not in taken]
        function.__signature__ = signature.replace(parameters=[*own, *more])  # type: ignore[attr-defined]
        return function

    return decorated


def values_of(settings: Iterable[Setting], given: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the value of each setting: the one given, else its default.

    Args:
      settings: that there are.
      given: some of them, by name.

    Raises:
      FlagError: one is unknown or has an unusable value.
    """
    rows = tuple(settings)
    return {**{row.name: row.default for row in rows}, **named(rows, given)}


def seeds_text(seeds: str | Iterable[int] | None) -> str | None:
    """Returns seeds as the flag has them: 1,2 for [1, 2].

    Raises:
      FlagError: they are neither a text nor whole numbers.
    """
    if seeds is None or isinstance(seeds, str):
        return seeds
    try:
        numbers = [operator.index(seed) for seed in seeds]
    except TypeError as error:
        raise FlagError(f"seeds={seeds!r:.80}: give a list of whole numbers, or a text as '1-5'") from error
    if not numbers:
        raise FlagError(f"seeds={seeds!r:.80}: name one at least")
    return ",".join(map(str, numbers))


def _parameter(row: Setting) -> inspect.Parameter:
    kind = row.kind.__name__ + (" | None" if row.default is None else "")
    return inspect.Parameter(row.name, inspect.Parameter.KEYWORD_ONLY, default=row.default, annotation=kind)
