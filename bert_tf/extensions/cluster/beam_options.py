"""Apache Beam's arguments and their implications."""

from __future__ import annotations

import contextlib
import io
import os
import re
import socket
from collections.abc import Sequence

from apache_beam.options.pipeline_options import DirectOptions, PipelineOptions

from bert_tf.errors import FlagError

_OF_SERVERS = ("job_endpoint", "flink_master", "spark_master_url")
_SERVER = re.compile(r"(?:\w+://)?(?P<host>[^\[\]/:,]+):(?P<port>\d{1,5})/?")
_PATIENCE_S = 10.0
_HERE = "DirectRunner"  # suffix of runners that compute locally; also the default


def pipeline_options(arguments: Sequence[str]) -> PipelineOptions:
    usage = io.StringIO()
    try:
        with contextlib.redirect_stderr(usage):  # its parser prints its usage and ends the process
            options = PipelineOptions(list(arguments))
            known, all_options = options.get_all_options(), options.get_all_options(retain_unknown_options=True)
    except SystemExit as error:
        if not error.code:  # --help
            raise
        raise FlagError(f"--beam: {usage.getvalue().splitlines()[-1].partition('error: ')[2]}") from error
    unknown = sorted(all_options.keys() - known.keys())
    if unknown and computes_here(options):  # a remote runner may know more options
        raise FlagError(f"--beam: Apache Beam has no option --{unknown[0]}")
    return options


def refuse_unreachable(options: PipelineOptions) -> None:
    """Raises FlagError if a named server does not answer; Beam would wait for minutes."""
    for name, value in options.get_all_options().items():
        match = _SERVER.fullmatch(str(value)) if name in _OF_SERVERS else None
        if match is None:
            continue
        try:
            socket.create_connection((match["host"], int(match["port"])), timeout=_PATIENCE_S).close()
        except OSError as error:
            raise FlagError(f"--beam: --{name}={value}: no answer: {error.strerror or error}") from error


def runner(options: PipelineOptions) -> str:
    return options.get_all_options().get("runner") or _HERE


def computes_here(options: PipelineOptions) -> bool:
    return runner(options).endswith(_HERE)


def threads(arguments: Sequence[str]) -> int | None:
    """Returns the compute threads of each worker process, None if the runner chooses the number of processes."""
    options = pipeline_options(arguments)
    direct = options.view_as(DirectOptions)
    if not computes_here(options) or direct.direct_running_mode != "multi_processing":
        return None
    cores = len(os.sched_getaffinity(0))
    return max(1, cores // (direct.direct_num_workers or cores))
