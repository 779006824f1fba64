"""A run that was never trained, with three evaluated checkpoints."""

import json

import numpy as np

from bert_tf.checkpoints.reader import write_checkpoint
from tests.batch.runs import write_run
from tests.tiny import held

STEPS = (20, 40, 60)
EVALUATIONS = [(20, 0.7, 0.2), (40, 0.9, 0.5), (60, 0.8, 0.1)]  # step, accuracy, loss


def write(folder, project):
    """The last checkpoint holds moments and a moving average."""
    folder = write_run(folder, project, steps=STEPS)
    names = [f'all_model_checkpoint_paths: "model.ckpt-{step}"' for step in STEPS]
    (folder / "checkpoint").write_text("\n".join(['model_checkpoint_path: "model.ckpt-60"', *names]) + "\n")
    lines = [{"step": step, "eval_accuracy": accuracy, "eval_loss": loss} for step, accuracy, loss in EVALUATIONS]
    (folder / "evaluations.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    more = {f"output_bias/{ending}": np.ones(2, np.float32) for ending in ("adam_m", "adam_v", "ema")}
    write_checkpoint(folder / "model.ckpt-60", {**held(folder / "model.ckpt-60"), **more})
    return folder


def files(folder):
    return {path.relative_to(folder): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def assert_refused(call, words, said, folder, **places):
    """A command line, with places filled in, ends in one line and writes nothing into a folder."""
    places = {"tmp": folder, "out": folder / "out", **places}
    status, out, errors = call(*words.format(**places).split(" "))
    assert (status, out, len(errors)) == (2, "", 1)
    assert said.format(**places) in errors[0]
    assert list(folder.iterdir()) == []
