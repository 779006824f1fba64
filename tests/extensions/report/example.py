"""Folders of runs, written by hand: what a page is made of."""

import json
from pathlib import Path

METRICS = (
    {"step": 10, "loss": 0.7, "learning_rate": 2e-5, "examples_per_second": 40.0, "reader_cost": 0.001, "batch_cost": 0.2,
     "host_memory_mb": 900.0},
    {"step": 20, "loss": 0.5, "learning_rate": 1e-5, "examples_per_second": 20.0, "reader_cost": 0.003, "batch_cost": 0.4,
     "host_memory_mb": 950.0},
)  # fmt: skip
EVALUATIONS = ({"step": 10, "eval_accuracy": 0.6, "eval_loss": 0.6}, {"step": 20, "eval_accuracy": 0.8, "eval_loss": 0.7})
SCRIPT = "<script>document.title = 'taken over'</script>"
WRONG = {
    "split": "dev", "id": "dev-3", "text_a": SCRIPT, "text_b": "a second text", "label": "yes", "predicted": "no",
    "confidence": 0.987, "error": None,
}  # fmt: skip
TIMING = {
    "steps": 30,
    "batch": {"mean": 0.4, "p50": 0.39, "p90": 0.5, "p99": 0.6},
    "reader": {"mean": 0.1, "p50": 0.1, "p90": 0.2, "p99": 0.3},
    "communication": {"mean": 0.0, "p50": 0.0, "p90": 0.0, "p99": 0.0},
    "diagnosis": {"text": "The run was input-bound."},
    "wall": {"seconds": 216.0, "parts": {"start": 4.0, "steps": 108.0, "evaluations": 102.0, "unaccounted": 2.0}},
}
RECORDED = {"steps": 3, "data": 0.01, "forward": 0.1, "backward": 0.2, "optimizer": 0.04, "batch": 0.4}
# 100 MiB are there before, 70 of them variables; the step takes 40, then 60 more, and gives all back.
LIVE = """# live memory of step 8
# allocator\tcpu\tbefore\t104857600\tpeak\t230686720
# held\tcpu\tweights\t31457280\toptimizer_state\t41943040
microseconds\tbytes\tlive\tallocator\toperation
0\t41943040\t41943040\tcpu\tbert/pooler/dense/MatMul
2000\t62914560\t104857600\tcpu\tgradients/bert/pooler/dense/MatMul_grad/MatMul
3000\t-41943040\t62914560\tcpu\tbert/pooler/dense/MatMul
4000\t-62914560\t0\tcpu\tgradients/bert/pooler/dense/MatMul_grad/MatMul
"""
TRACE = """SrcNode bert/embeddings/word_embeddings/read 1
Output 0 1048576 1048576 cpu 1000000
SrcNode bert/pooler/dense/MatMul 1
Output 0 2097152 2097152 cpu 1002000
SrcNode gradients/bert/pooler/dense/MatMul_grad/MatMul 1
Output 0 3145728 3145728 cpu 1004000
"""


def operation(name: str, kind: str, micros: float, **more) -> dict:
    """Returns a row of operations.json: called once in each of two steps."""
    times = {"calls": 2, "total_us": micros, "min_us": micros / 4, "max_us": micros}
    row = {"name": name, "type": kind, "device": "CPU:0", "dtype": "float32", "inputs": [], "outputs": [], **times}
    return {**row, "products": [], "kernels": [], **more}


# Two steps of 1 ms: 600 us of each are products, 200 us a sum of gradients.
OPERATIONS = {
    "steps": 2,
    "step_us": 1000.0,
    "gpus": {},
    "matmul_peak_gflops": {"float32": 10.0},
    "operations": [
        operation("bert/pooler/dense/kernel", "VarHandleOp", 0.0),
        operation(
            "bert/pooler/dense/MatMul",
            "MatMul",
            1200.0,
            products=[{"batch": 1, "m": 100, "k": 100, "n": 150, "calls": 2, "total_us": 1200.0}],
        ),
        operation("gradients/bert/pooler/dense/BiasAdd_grad/BiasAddGrad", "BiasAddGrad", 400.0),
        operation("IteratorGetNext", "IteratorGetNext", 100.0),
    ],
}


def record(**training) -> dict:
    """Returns run_config.json."""
    determining = {"task_name": "RTE", "train_batch_size": 8, "seed": 1, "bert_config": {"hidden_size": 8}, **training}
    flags = " ".join(f"--{name}={determining[name]}" for name in ("task_name", "seed"))
    return {
        "training": determining,
        "command": f"python run_classifier.py {flags}",
        "schedule": {"train_examples": 80, "steps": 20},
        "machine": {"strategy": "one_device", "devices": ["/device:CPU:0"], "replicas": 1},
        "versions": {"tensorflow": "2.15.1"},
    }


def results(accuracy: float = 0.75) -> dict:
    """Returns eval_results.json."""
    split = {
        "accuracy": accuracy,
        "loss": 0.55,
        "examples": 8,
        "collapsed": None,
        "intervals_95": {"accuracy": [accuracy - 0.1, accuracy + 0.1]},
        "labels": ["no", "yes"],
        "per_class": [
            {"label": "no", "precision": 0.75, "recall": 0.75, "f1": 0.75, "support": 4},
            {"label": "yes", "precision": 0.75, "recall": 0.75, "f1": 0.75, "support": 4},
        ],
        "confusion": [[3, 1], [1, 3]],
    }
    return {"eval_accuracy": accuracy, "global_step": 20, "splits": {"dev": split}}


def write_json(path: Path, content: object) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(content))


def write_lines(path: Path, lines) -> None:
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))


def begun(folder: Path, **training) -> Path:
    """Writes a run that was stopped after its second report."""
    write_json(folder / "run_config.json", {**record(**training), "schedule": {"train_examples": 80, "steps": 30}})
    write_lines(folder / "metrics.jsonl", METRICS)
    return folder


def finished(folder: Path, *, accuracy: float = 0.75, **training) -> Path:
    """Writes a run with everything that there can be."""
    write_json(folder / "run_config.json", record(**training))
    write_lines(folder / "metrics.jsonl", METRICS)
    write_lines(folder / "evaluations.jsonl", EVALUATIONS)
    write_json(folder / "eval_results.json", results(accuracy))
    write_lines(folder / "wrong_examples.jsonl", [WRONG])
    write_json(folder / "timing.json", TIMING)
    write_json(folder / "profile" / "phases.json", RECORDED)
    write_json(folder / "profile" / "operations.json", OPERATIONS)
    (folder / "memory_trace_step8.txt").write_text(TRACE)
    (folder / "live_memory_step8.tsv").write_text(LIVE)
    return folder
