"""Exports a whole model as ONNX: graphs, weights, texts' rules, task and card, used by this package without TensorFlow.

Each graph is compared with TensorFlow before anything is written. Optional packages are imported late.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from bert_tf import extras, run_layout
from bert_tf.batch.engine import Batch, Compute
from bert_tf.batch.trained import Trained
from bert_tf.estimator import run_folder
from bert_tf.extensions.engines import onnxruntime_session
from bert_tf.extensions.export import gate, onnx_engine
from bert_tf.extensions.export import onnx_folder as folders
from bert_tf.extensions.export.formats import Target
from bert_tf.extensions.export.job import FLOAT32, ExportJob, metadata, write_card, write_kept_files
from bert_tf.extensions.export.onnx_folder import layer_output
from bert_tf.extensions.export.write import job_of, record_of, write_record, writing
from bert_tf.head_spec import VECTORS, HeadSpec
from bert_tf.io import files
from bert_tf.io.log_form import log
from bert_tf.modeling.heads import registry as heads
from bert_tf.tasks.base import Task
from bert_tf.tasks.decision import DECISION
from bert_tf.tokenization.vocabulary import Vocabulary

_REQUIREMENTS = "requirements.txt"
_ALL_THREADS = 0
_FOR_PEOPLE = (run_layout.CARD, _REQUIREMENTS, gate.FILE)  # may be edited
_ALWAYS_NEEDED = ("absl-py", "ijson", "numpy", "platformdirs", "psutil", "pyyaml", "tqdm")


def write(exported: ExportJob, folder: Path) -> None:
    """Writes a model deterministically into an empty folder, in float32 or with int8 weights.

    Raises BertError if the weights are damaged or reduced precision costs more than allowed.
    """
    write_graphs({"": exported}, folder)
    write_files(exported, folder)
    write_requirements(exported.trained.vocabulary, folder)


def write_several(models: Mapping[str, Trained], target: Target, *, find_data: Callable[[Task], str]) -> Path:
    """Writes models by their names, whole or not at all, to one folder, whose graphs compute equal layers once.

    Raises CheckpointError if they do not read texts alike.
    """
    from bert_tf.extensions.together import engine, joint  # an extension

    joint.refuse_others(list(models.values()))
    jobs = {f"{name}/": job_of(model, target, find_data) for name, model in models.items()}
    with writing(target, list(models.values())) as folder:
        for scope in jobs:
            (folder / scope).mkdir()
        write_graphs(jobs, folder)
        sums = {name: files.digest(folder / name) for name in folders.OF_GRAPHS}
        for scope, exported in jobs.items():
            write_files(exported, folder / scope)
            facts = record(exported, folder / scope)
            own = {
                "version": folders.VERSION_OF_SEVERAL,
                "scope": scope,
                "model": {**facts["model"], engine.TRUNK: engine.Together.trunk(exported.trained)},
                "sha256": {**facts["sha256"], **sums},
            }
            write_record(folder / scope, {**record_of(exported, folders.FORMAT), **facts, **own})
        write_requirements(next(iter(models.values())).vocabulary, folder)  # that of all
        of_all = {"format": folders.FORMAT, "version": folders.VERSION_OF_SEVERAL, "models": list(models)}
        write_record(folder, {**of_all, "precision": target.options.precision})
    log.info("%s: %s of %s", target.output, folders.FORMAT, ", ".join(model.prefix for model in models.values()))
    return Path(target.output)


def write_graphs(models: Mapping[str, ExportJob], folder: Path) -> None:
    """Writes the graphs of models by their scopes, which are their folders below, too, and compares them; as `write`."""
    from bert_tf.extensions.export import onnx_graphs

    facts = {f"{scope}{name}": fact for scope, exported in models.items() for name, fact in metadata(exported).items()}
    trained = {scope: exported.trained for scope, exported in models.items()}
    onnx_graphs.write_graphs(trained, folder, facts)
    for scope, one in trained.items():
        gate.require_agreement(one, _opened(one, folder, scope))
        if heads.is_known(VECTORS):  # else nothing reads this graph
            last = HeadSpec(one.config.hidden_size, VECTORS, (("layers", (-1,)), ("pooling", None)))
            gate.require_agreement(one.with_head(last), _last_layer(one, folder, scope))
    if next(iter(models.values())).options.precision != FLOAT32:
        onnx_graphs.write_graphs(trained, folder, facts, int8=True)
        for scope, exported in models.items():
            gate.measure(exported, _opened(exported.trained, folder, scope), folder / scope)


def write_files(exported: ExportJob, folder: Path) -> None:
    """Writes what is beside the graphs of a model."""
    write_kept_files(exported, folder, for_package=True)
    (folder / run_layout.CONFIG).write_text(exported.trained.config.to_json() + "\n", encoding="utf-8")
    write_card(exported, folder / run_layout.CARD, what="Model in ONNX")


def write_requirements(vocabulary: Vocabulary, folder: Path) -> None:
    """Writes for pip what uses the model, in the versions that were tried.

    `bert_tf` itself is installed without its dependencies, one of which is TensorFlow.
    """
    base, by_extra = extras.base(), extras.by_name()
    runtime = [line for line in by_extra["onnx"] if line.startswith("onnxruntime")]
    tokenizers = by_extra["vocabulary"] if vocabulary.own_rules else []
    parts = {
        "predict, encode, search": (*(base[name] for name in _ALWAYS_NEEDED), *runtime, *tokenizers),
        "serve": (base["jinja2"], *by_extra["serve"]),
    }
    lines = [
        "# Uses this model without TensorFlow. The package itself: pip install --no-deps dist/bert_tf-*.whl (make wheel)",
        f"# evaluate and calibrate --check also need: {' '.join(extras.METRICS)}",
    ]
    for commands, names in parts.items():
        lines += [f"# {commands}", *sorted(names)]
    (folder / _REQUIREMENTS).write_text("\n".join(lines) + "\n", encoding="utf-8")


def record(exported: ExportJob, folder: Path) -> Mapping[str, Any]:
    """What `onnx_folder` reads besides the facts of any export."""
    trained = exported.trained
    # Of the data digests alone, for `Trained.warn_if_fitted_on`: their paths are not exported.
    kept, digest = {*run_folder.read_by_others(), "train_examples_sha256"}, trained.fitted_on.get("data_sha256")
    learned = {name: value for name, value in trained.record.items() if name in kept}
    fitted_on = {"data_sha256": digest} if digest else {}
    model = {
        **learned,
        **exported.family.record(),
        "task_name": exported.task.name,
        "max_seq_length": trained.max_seq_length,
        "do_lower_case": trained.lower_case,
        "long_text": trained.long_text,
        **({DECISION: {**trained.record[DECISION], "fitted_on": fitted_on}} if DECISION in trained.record else {}),
    }
    return {
        "version": folders.VERSION,
        "model": model,
        "learned_sha256": run_folder.learned_digest(model),
        "outputs": [folders.described(field) for field in trained.outputs],
        "sha256": {path.name: files.digest(path) for path in sorted(folder.iterdir()) if path.name not in _FOR_PEOPLE},
    }


def open_folder(folder: Path) -> Compute:
    return onnxruntime_session.opened(folder / folders.GRAPH, _ALL_THREADS)


def _opened(trained: Trained, folder: Path, scope: str) -> Compute:
    return onnx_engine.of_scope(folder / folders.GRAPH, _ALL_THREADS, [field.name for field in trained.outputs], scope)


def _last_layer(trained: Trained, folder: Path, scope: str) -> Compute:
    name = layer_output(trained.config.num_hidden_layers - 1)
    compute = onnx_engine.of_scope(folder / folders.ENCODER, _ALL_THREADS, [name], scope)

    def vectors(batch: Batch) -> Mapping[str, Any]:
        return {VECTORS: compute(batch)[name]}

    return vectors
