"""Settings of the service; imports neither TensorFlow nor HTTP, so that --help is fast."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from bert_tf import extension
from bert_tf.batch import model_names
from bert_tf.batch.job import ModelOverrides
from bert_tf.checkpoints import model_formats, prefixes
from bert_tf.checkpoints.prefixes import refuse_missing_model
from bert_tf.errors import FlagError
from bert_tf.settings import changed, group, of_extensions, read_settings, refuse_taken, setting
from bert_tf.training.settings import TENSORFLOW, MachineSettings

_LONGEST_S = 86_400  # seconds of a day
_MOST_PORTS = 65_535


@dataclasses.dataclass(frozen=True)
class Address:
    """Where the service listens, and who may access what."""

    host: str = setting(
        "127.0.0.1", "address to listen on; 0.0.0.0 for all networks (put a proxy with access control in front)"
    )
    port: int = setting(8500, "port to listen on; 0 for any free port (see the log)", lowest=0, highest=_MOST_PORTS)
    allowed_hosts: str | None = setting(
        None,
        "accepted Host names besides localhost, comma-separated; default: none on a loopback address, else any",
    )
    admin: bool = setting(False, "allow POST /reload; SIGHUP reloads in any case")
    access_log: bool = setting(False, "log one line per request")


@dataclasses.dataclass(frozen=True)
class Computing:
    """Workers and batching."""

    workers: int = setting(1, "number of worker processes, each with its own weights", lowest=1, highest=256)
    batch_tokens: int = setting(2048, "maximum tokens per batch, over all waiting requests", lowest=1)
    max_delay_ms: float = setting(
        2.0, "maximum wait of a request for others to share its batch; none after a lone request", lowest=0, highest=60_000
    )
    watch: bool = setting(False, "reload when the files of the model change")


@dataclasses.dataclass(frozen=True)
class Limits:
    """Limits of one request and of all requests together."""

    TITLE: ClassVar[str] = "Limits"

    max_body_mb: float = setting(1.0, "maximum request body in MB; larger ones get 413", lowest=0.001, highest=1024)
    max_rows: int = setting(1024, "maximum rows per request", lowest=1)
    max_text_length: int = setting(100_000, "maximum characters per text", lowest=1)
    max_request_tokens: int = setting(262_144, "maximum tokens per request, including windows of long texts", lowest=1)
    max_requests: int = setting(512, "maximum requests in progress; further ones get 429", lowest=1)
    max_queue_tokens: int = setting(262_144, "maximum waiting tokens; further requests get 429", lowest=1)
    max_connections: int = setting(1024, "maximum connections; further ones are closed at once", lowest=1, highest=65_536)

    @property
    def body_bytes(self) -> int:
        return int(self.max_body_mb * 1e6)


@dataclasses.dataclass(frozen=True)
class Patience:
    """Timeouts of the service."""

    TITLE: ClassVar[str] = "Timeouts"

    header_timeout_s: float = setting(10.0, "timeout for the head of a request", lowest=0.01, highest=_LONGEST_S)
    body_timeout_s: float = setting(30.0, "timeout for the body of a request", lowest=0.01, highest=_LONGEST_S)
    idle_timeout_s: float = setting(
        60.0,
        "timeout between two requests of a connection, and for a client to read",
        lowest=0.01,
        highest=_LONGEST_S,
    )
    answer_timeout_s: float = setting(
        60.0,
        "timeout for an answer (503); a worker silent for so long is replaced",
        lowest=0.01,
        highest=_LONGEST_S,
    )
    grace_s: float = setting(30.0, "time to finish accepted requests after SIGTERM", lowest=0.0, highest=_LONGEST_S)


@dataclasses.dataclass(frozen=True)
class ServeConfig:
    runs: tuple[str, ...] = setting(
        None,
        "folder of a run, or a checkpoint; several answer POST /predict/FOLDER, and compute equal layers once",
        required=True,
        positional=True,
        refuse_missing=refuse_missing_model,
    )
    address: Address = group(Address, "Address and access")
    computing: Computing = group(Computing, "Workers and batches")
    limits: Limits = group(Limits)
    patience: Patience = group(Patience)
    task_name: str | None = setting(None, "task of the model, if it has no run_config.json")
    extensions: Any = group(of_extensions("serving"))
    model: ModelOverrides = group(ModelOverrides)
    machine: MachineSettings = group(MachineSettings)

    @classmethod
    def complete(cls, values: Mapping[str, Any]) -> dict[str, Any]:
        """Puts the models of a folder in its place, and refuses several that cannot be served at once."""
        named = values.get("runs") or ()
        runs = tuple(model for run in named for model in model_formats.models_in(run))
        of_hub = next(filter(prefixes.as_hub_name, runs), None)
        if of_hub and values.get("watch"):
            remedy = "correct the path, or leave out --watch (SIGHUP fetches a model of the hub again)"
            raise FlagError(f"--watch: {of_hub} is not a local path, and models of the hub are not watched; {remedy}")
        pattern = next(filter(prefixes.may_name_several, runs), None)
        if pattern and values.get("watch"):
            raise FlagError(f"--watch: {pattern} is a pattern, whose matches may change; name the folder of the run")
        if len(runs) > 1:
            names_of(runs)
            together()
            exported = [run for run in runs if model_formats.file_of(run) is not None]
            folders = {os.path.dirname(os.path.abspath(run)) for run in exported}
            if exported and (len(exported) < len(runs) or len(folders) > 1):
                raise FlagError(f"{exported[0]} is an exported model; name runs alone, or export them to one folder")
            engine = values.get("engine", TENSORFLOW)
            if engine != TENSORFLOW and not exported:
                raise FlagError(f"--engine={engine}: several checkpoints are computed by TensorFlow; leave it out")
        return {**values, "runs": runs} if named else dict(values)

    @property
    def loading(self) -> Mapping[str, Any]:
        """Arguments of `bert_tf.load` that are not its defaults."""
        return {**changed(self.model), **changed(self.machine)}


extension.refuse_broken()
refuse_taken(ServeConfig, {name: one.serving for name, one in extension.installed().items()})


def configured(*runs: str, **values: Any) -> ServeConfig:
    return read_settings(ServeConfig, {"runs": runs or None, **values})


def names_of(runs: Sequence[str]) -> tuple[str, ...]:
    """Names of several models in requests; FlagError if two are equal."""
    return model_names.names_of(runs, "by which requests tell them apart")


def together() -> extension.Extension:
    """The extension that computes several models; BertError if its folder was deleted."""
    return extension.needed("together", "serve of several models")
