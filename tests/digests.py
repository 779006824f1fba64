"""Records what the package computes and writes, to compare two versions of the code.

    python -m tests.digests record before.json
    python -m tests.digests compare before.json after.json

Recorded: weights after training of each family and with the main flags, every file that the commands leave, what they print,
`--help=all` of each command, signatures of the public API, and the service's OpenAPI document. Values are compared exactly:
both recordings must be of one machine and one TensorFlow. What differs between the two passes of
a recording is left out.
"""

import hashlib
import inspect
import json
import os
import random
import re
import shlex
import sys
import tempfile
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from bert_tf import __main__ as front
from bert_tf import config, home
from tests import processes, tiny

SAMPLE = home.SAMPLE
_TRAINING = "--do_train --do_eval --do_predict --num_train_steps=40 --train_batch_size=8 --max_seq_length=48"
_START = (
    "--vocab_file={d}/model/vocab.txt --bert_config_file={d}/model/bert_config.json --init_checkpoint={d}/model/bert_model.ckpt"
)
_SKIPPED = re.compile(r"events\.out|graph\.pbtxt|\.lock$|/profile/|/native/|/corpus/|calibration")
_OWN = "--train_file={d}/train.csv --dev_file={d}/dev.csv"
_PAIR = "--text_a=text_a --text_b=text_b"
_RUNS = {
    "mrpc": "--task_name=MRPC",
    "vectors": "--task_name=STS-B-vectors",
    "squad": "--task_name=SQuAD --max_seq_length=64 --doc_stride=16",
    "squad2": "--task_name=SQuAD2 --max_seq_length=64 --doc_stride=16",
    "tags": "--task_name=CoNLL2003",
    "choice": "--task_name=SWAG --train_batch_size=4",
    "labels": "--task_name=custom --problem=multi_label --label_separator=; "
    + "".join(f"--{s}_file={{d}}/{s}.csv " for s in tiny.SIZES),
    "regression": "--task_name=custom --problem=regression --label_column=score --do_predict=false " + _OWN,
    "contrastive": "--task_name=custom --problem=contrastive " + _PAIR + " --label_column=score --do_predict=false " + _OWN,
    "published": "--task_name=MRPC --published_layout --log_form=published",
    "bfloat16": "--task_name=MRPC --precision=bfloat16",
    "lamb": "--task_name=MRPC --optimizer=lamb --layer_decay=0.9 --freeze=embeddings --learning_rate_schedule=cosine",
    "averages": "--task_name=MRPC --ema=0.9 --average_last=2 --save_checkpoints_steps=10 --keep_optimizer_slots",
    "parts": "--task_name=MRPC --gradient_accumulation_steps=2 --recompute --label_smoothing=0.1 --class_weights=balanced",
    "replicas": "--task_name=MRPC --virtual_devices=2 --strategy=mirrored --check_replicas_every_n_steps=10",
    "best": "--task_name=MRPC --eval_every_n_steps=10 --early_stopping_patience=2 --target_metric=accuracy:0.5",
    "grouped": "--task_name=MRPC --group_by_length --long_text=head_tail --max_seq_length=24",
    "seeds": "--task_name=MRPC --seeds=1-2 --num_train_steps=8",
    "no-kernels": "--task_name=MRPC --native_kernels=false --fused_adam=false --memory_trace_step=5",
}
_COMMANDS = {
    "pretrain": "pretrain --output_dir={d}/out/pretrain --num_train_steps=40 --train_batch_size=8 --max_seq_length=48 "
    + _START,
    "pretraining-data": "pretraining-data --input_file={s}/Pretraining/train.txt --output_file={d}/out/data/rows.tfrecord "
    "--num_shards=2 --vocab_file={d}/model/vocab.txt --max_seq_length=48",
    "fill-mask": "fill-mask {d}/out/pretrain --text='The [MASK] is here.'",
    "evaluate": "evaluate --task_name=MRPC --checkpoints={d}/out/mrpc:all,{d}/out/averages:all --output_dir={d}/out/evaluate",
    "zero-shot": "evaluate --task_name=STS-B --zero_shot --data_dir={s}/STS-B-vectors "
    "--checkpoints={d}/out/vectors --output_dir={d}/out/zero",
    **{
        f"predict {kind}": f"predict --checkpoint={{d}}/out/mrpc --input={{d}}/a.tsv {_PAIR} --output={{d}}/out/read/a.{kind}"
        for kind in ("tsv", "csv", "jsonl")
    },
    **{
        f"predict {run}": f"predict --checkpoint={{d}}/out/{run} --input={{s}}/{name} --output={{d}}/out/predict/{run}.jsonl"
        for run, name in (
            ("squad", "SQuAD/dev-v1.1.json"),
            ("tags", "CoNLL2003/test.txt"),
            ("choice", "SWAG/val.csv"),
            ("vectors", "STS-B-vectors/dev.tsv"),
        )
    },
    **{
        f"encode {kind}": f"encode --checkpoint={{d}}/out/vectors --input={{d}}/texts.txt --output={{d}}/out/encode/a.{kind}"
        for kind in ("npy", "npz", "jsonl", "parquet")
    },
    "search": "search --index={d}/out/encode/a.npz --query='An apple.' --json",
    **{
        f"export {kind} {run}": f"export {{d}}/out/{run} --format={kind} --output={{d}}/out/exports/{run}-{kind}"
        for kind in ("saved_model", "huggingface", "onnx")
        for run in ("mrpc", "squad", "tags", "choice", "vectors")
    },
    "average": "checkpoint average {d}/out/averages --last=2 --output={d}/out/averaged",
    "strip": "checkpoint strip {d}/out/averages --output={d}/out/stripped",
    **{
        f"convert {to}": f"checkpoint convert {{d}}/out/mrpc --to={to} --output={{d}}/out/converted-{to}"
        for to in ("tf1", "tf2-names", "hf")
    },
    "inspect": "checkpoint inspect {d}/out/mrpc --format=json",
    "diff": "checkpoint diff {d}/out/mrpc {d}/out/lamb --format=json",
    "extend": "vocabulary extend {d}/model/bert_model.ckpt --from={s}/Pretraining/train.txt --top=5 --output={d}/out/extended",
    "show": "vocabulary show {d}/model/vocab.txt --text={s}/Pretraining/held_out.txt",
    "check MRPC": "data check {s}/MRPC",
    "check SQuAD": "data check {s}/SQuAD",
    "plan": "memory plan --bert_config_file={d}/model/bert_config.json --gpu_memory_mb=5175 --max_seq_length=48",
    "memory": "memory report {d}/out/no-kernels/memory_trace_step5.txt",
    "report": "report {d}/out/mrpc {d}/out/lamb --output={d}/out/page.html",
    "devices": "devices",
    "reproduce": "reproduce gtx1060 --num_train_steps=4 --bert_base_dir={d}/model --output_dir={d}/out/reproduce",
}


def record() -> dict[str, str]:
    """Returns digests by name; of two passes, what is the same in both."""
    first, second = _pass(), _pass()
    return {name: digest for name, digest in first.items() if second.get(name) == digest}


def _pass() -> dict[str, str]:
    with tempfile.TemporaryDirectory(prefix="digests-") as name:
        folder = Path(name)
        return {key: _digest(value.replace(name, "DIR")) for key, value in _everything(folder)}


def _everything(folder: Path) -> Iterator[tuple[str, str]]:
    yield from _interface()
    _materials(folder)
    _call(
        [
            "-m",
            "bert_tf",
            *_words(
                f"vocabulary make {SAMPLE}/*/*.t* --size=600 --output={{d}}/model/vocab.txt --input_format=sentences", folder
            ),
        ]
    )
    _weights(folder / "model")
    for name, flags in _RUNS.items():
        line = f"run_classifier.py {_TRAINING} {_START} --output_dir={{d}}/out/{name} {flags}"
        yield from _outcome(name, _words(line, folder))
    for name, line in _COMMANDS.items():
        yield from _outcome(name, ["-m", "bert_tf", *_words(line, folder)])
    for run in ("mrpc", "squad", "tags", "choice", "vectors"):
        yield from _service(folder / "out" / run)
    for path in sorted(path for path in (folder / "out").rglob("*") if path.is_file() and not _SKIPPED.search(str(path))):
        yield from _file(path, path.relative_to(folder).as_posix())


def _interface() -> Iterator[tuple[str, str]]:
    import bert_tf

    for name in bert_tf.__all__:
        value = getattr(bert_tf, name)
        if not (inspect.isclass(value) and issubclass(value, Exception)):
            yield f"signature {name}", str(inspect.signature(value))
        for method, function in inspect.getmembers(value, _is_written_in_python) if inspect.isclass(value) else ():
            if not method.startswith("_"):
                yield f"signature {name}.{method}", str(inspect.signature(function))
    for name in front.COMMANDS:
        yield from _outcome(f"help {name}", ["-m", "bert_tf", name, "--help=all"])


def _is_written_in_python(value: object) -> bool:
    return inspect.isfunction(value) or inspect.ismethod(value)


def _materials(folder: Path) -> None:
    """Writes rows of every kind that the sample lacks."""
    words = random.Random(5)
    folder.joinpath("model").mkdir()
    rows = [
        (
            f"the {words.choice('apple river stone'.split())} is {words.choice('old new red'.split())} {n}",
            f"a {words.choice('boat bird'.split())} went {n}",
        )
        for n in range(40)
    ]
    for split, size in tiny.SIZES.items():
        lines = [
            f'"{a}","{b}",{";".join(sorted({a.split()[1], a.split()[3]}))},{n % 5}' for n, (a, b) in enumerate(rows[:size])
        ]
        (folder / f"{split}.csv").write_text("\n".join(["text_a,text_b,label,score", *lines]) + "\n")
    (folder / "a.tsv").write_text("".join(f"{a}\t{b}\n" for a, b in [("text_a", "text_b"), *rows]))
    (folder / "texts.txt").write_text("".join(f"{a}\n" for a, _ in rows))


def _weights(folder: Path) -> None:
    pieces = len((folder / "vocab.txt").read_text().splitlines())
    sizes = config.BertConfig.tiny(vocab_size=pieces)
    (folder / "bert_config.json").write_text(sizes.to_json())
    tiny.write_checkpoint(folder / "bert_model.ckpt", tiny.random_weights(sizes))


def _words(line: str, folder: Path) -> list[str]:
    words = []
    for word in shlex.split(line.format(d=folder, s=SAMPLE)):
        words += sorted(map(str, Path("/").glob(word[1:]))) if "*" in word else [word]
    return words


def _call(args: list[str]) -> Any:
    return processes.run(args, environment={**os.environ, "COLUMNS": "120"})


def _outcome(name: str, args: list[str]) -> Iterator[tuple[str, str]]:
    done = _call(args)
    print(f"{name}: {done.returncode}", file=sys.stderr, flush=True)
    if done.returncode:
        print(done.stderr[-600:], file=sys.stderr)
    yield f"{name}: status", str(done.returncode)
    for number, line in enumerate(done.stdout.splitlines()):
        yield f"{name}: line {number}", line


def _service(run: Path) -> Iterator[tuple[str, str]]:
    with processes.start(["-m", "bert_tf", "serve", str(run), "--port=8517", "--workers=1"]) as server:
        server.wait_for("8517")
        for path in ("openapi.json", "", "docs"):
            with urllib.request.urlopen(f"http://127.0.0.1:8517/{path}", timeout=60) as answer:
                text = answer.read().decode()
            yield from _leaves(f"service {run.name} {path}", json.loads(text) if path.endswith(".json") else text.splitlines())
        server.kill()


def _file(path: Path, name: str) -> Iterator[tuple[str, str]]:
    if path.name.endswith(".index"):
        yield from _checkpoint(path.with_suffix(""), name)
    elif path.suffix == ".json":
        yield from _leaves(name, json.loads(path.read_text()))
    elif path.suffix in {".txt", ".tsv", ".csv", ".jsonl", ".md", ".html"}:
        for number, line in enumerate(path.read_text().splitlines()):
            yield from (
                _leaves(f"{name}:{number}", json.loads(line)) if path.suffix == ".jsonl" else [(f"{name}:{number}", line)]
            )
    elif ".data-" not in path.name:
        yield name, hashlib.sha256(path.read_bytes()).hexdigest()


def _checkpoint(prefix: Path, name: str) -> Iterator[tuple[str, str]]:
    import tensorflow as tf

    reader = tf.train.load_checkpoint(str(prefix))
    for variable in sorted(reader.get_variable_to_shape_map()):
        value = np.asarray(reader.get_tensor(variable))
        yield f"{name} {variable}", f"{value.dtype} {value.shape} {hashlib.sha256(value.tobytes()).hexdigest()}"


def _leaves(name: str, value: Any) -> Iterator[tuple[str, str]]:
    if isinstance(value, dict):
        for key in value:
            yield from _leaves(f"{name}/{key}", value[key])
    elif isinstance(value, list):
        for number, one in enumerate(value):
            yield from _leaves(f"{name}/{number}", one)
    else:
        yield name, repr(value)


def _digest(value: str) -> str:
    return hashlib.sha256(value.encode()).hexdigest()[:12]


def compare(before: dict[str, str], after: dict[str, str]) -> list[str]:
    """Returns a line for each digest that differs, is missing or is new."""
    lines = [f"missing: {name}" for name in before if name not in after]
    lines += [f"new: {name}" for name in after if name not in before]
    return lines + [f"differs: {name}" for name, digest in before.items() if after.get(name, digest) != digest]


def main(arguments: list[str]) -> int:
    """Runs a command line; status 1 if two recordings differ."""
    if arguments[0] == "record":
        Path(arguments[1]).write_text(json.dumps(record(), indent=0))
        return 0
    lines = compare(*(json.loads(Path(name).read_text()) for name in arguments[1:]))
    print("\n".join(lines) or "equal")
    return bool(lines)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
