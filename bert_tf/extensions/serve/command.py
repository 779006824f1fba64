"""Serve: answers requests over HTTP with a trained model."""

from __future__ import annotations

import asyncio
import contextlib
import importlib.util
import os
from typing import Any

from bert_tf import extras
from bert_tf.errors import FlagError
from bert_tf.extensions.serve.settings import ServeConfig, configured
from bert_tf.library.keywords import takes
from bert_tf.operations.command import Call, Command

_NEEDED = ("uvicorn", "starlette", "prometheus_client")
_WARNINGS = -1  # verbosity in a program, which may set up its own log


@takes(ServeConfig)
def serve(*runs: str | os.PathLike[str], **settings: Any) -> None:
    """Serves a trained model, or several, over HTTP until SIGTERM or Ctrl-C, as `python -m bert_tf serve` does.

    It starts processes that import the program's main module again: call it under `if __name__ == "__main__":`.

    Args:
      *runs: folders of runs, or checkpoints; one, or several as docs/serving.md describes.
      **settings: settings of the command, by flag name.

    Raises:
      BertError: the model cannot be loaded, the port is in use, or a package is missing.
      KeyboardInterrupt: a second signal arrived before accepted requests were finished.
    """
    run_service(configured(*(os.fspath(run) for run in runs), **settings), verbosity=_WARNINGS)


def run_service(config: ServeConfig, *, verbosity: int = 0) -> None:
    """Serves until a signal, then finishes accepted requests; a second signal raises KeyboardInterrupt."""
    missing = [name for name in _NEEDED if importlib.util.find_spec(name) is None]
    if missing:
        raise FlagError(f"serve needs {', '.join(missing)}: {extras.install('serve')}")
    with contextlib.suppress(RuntimeError):  # no event loop runs
        asyncio.get_running_loop()
        raise FlagError("serve: an event loop runs here, as in a notebook; start it in a terminal: python -m bert_tf serve RUN")
    from bert_tf.extensions.serve import server  # HTTP: --help stays fast

    server.run(config, verbosity)


def _run(call: Call) -> None:
    run_service(call.settings, verbosity=call.verbosity)


COMMAND = Command(
    "Serves a trained model over HTTP, or several at once, with a page to try it (docs/serving.md).",
    ServeConfig,
    _run,
    example="python -m bert_tf serve out/mrpc --port=8500",
    first=("port", "host", "workers", "engine", "encode"),
    stopped="stopped; requests that were not yet answered are lost",
)
