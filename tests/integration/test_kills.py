"""What holds of every family: a run or a job that is killed at any moment ends as one that was not, parts add up, it learns."""

import functools
import importlib
import json
import os
import resource
import signal
from typing import NamedTuple

import numpy as np
import pytest
import tensorflow as tf

import bert_tf
from bert_tf.extensions.distill import part as distillation
from tests import processes
from tests.integration import commands, families
from tests.tiny import HALVES, held, write_project

pytestmark = pytest.mark.several_machines  # dozens of processes
STEPS, EVERY, CHUNK = 10, 4, 4
SIZES = {"train": 60, "dev": 20, "test": 19}


def questions(random, count):
    return [families.question(random, f"q{n}", int(words)) for n, words in enumerate(random.integers(1, 40, count))]


def tagged(random, count):
    texts = (families.tagged(random, length) for length in random.integers(2, 31, count))
    return [{"tokens": words, "tags": tags} for words, tags in texts]


def related(random, count):
    return [{name: row[name] for name in ("id", "text_a", "text_b")} for row in families.pairs(random, count)]


def long(random, count):
    """Texts of one to five windows."""
    for number, words in enumerate(random.integers(1, 35, count)):
        yield {
            "id": f"t{number}",
            "text": " ".join([HALVES[number % 2][0], *random.choice(families.NEUTRAL, words)]),
            "label": number % 2,
        }


ROWS = {
    "windows": long,
    "lora": long,
    "span": questions,
    "tags": tagged,
    "choice": families.choices,
    "similarity": families.pairs,
    "contrastive": related,
}
PROBLEMS = {
    "windows": {"problem": "classification", "long_text": "windows", "max_seq_length": 12, "group_by_length": True},
    "lora": {"problem": "classification", "lora_rank": 2, "ema": 0.9, "average_last": 2},
}
SENTENCES = ("windows", "lora")  # their pages have no panel
LABELS = ("answer", "start", "tags", "label")  # which rows to predict lack


class Moment(NamedTuple):
    """Which call of a function a process does not survive."""

    module: str
    name: str
    call: int = 1


MOMENTS = {
    "between steps": Moment("bert_tf.estimator.progress_hook", "ProgressHook.after_run", EVERY + 2),
    "before a checkpoint is listed": Moment(
        "tensorflow.python.checkpoint.checkpoint_management", "update_checkpoint_state_internal", 2
    ),
    "after the last step": Moment("bert_tf.training.inference", "Inference.evaluate"),
    "in the evaluation": Moment("bert_tf.estimator.forward", "Forward.outputs"),
    "before predictions are written": Moment("bert_tf.training.results", "write_predictions"),
}


def die():
    os.kill(os.getpid(), signal.SIGKILL)


def die_at(moment):
    """Has this process killed at a moment."""
    module = importlib.import_module(moment.module)
    holder = functools.reduce(getattr, moment.name.split(".")[:-1], module)
    name = moment.name.rpartition(".")[2]
    function, calls = getattr(holder, name), []

    def killing(*arguments, **settings):
        calls.append(name)
        return die() if len(calls) == moment.call else function(*arguments, **settings)

    setattr(holder, name, killing)


def die_in_a_file():
    """Has the kernel kill this process in the middle of writing the weights of the second checkpoint."""
    save = tf.compat.v1.train.Saver.save

    def killing(self, session, path, global_step=None, **settings):
        if global_step == 2 * EVERY:
            resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
            signal.signal(signal.SIGXFSZ, signal.SIG_DFL)
            resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))
        return save(self, session, path, global_step, **settings)

    tf.compat.v1.train.Saver.save = killing


KILLS = {**{name: functools.partial(die_at, moment) for name, moment in MOMENTS.items()}, "in a checkpoint": die_in_a_file}


@pytest.fixture(scope="module", params=ROWS)
def problem(request):
    return request.param


@pytest.fixture(scope="module")
def data(problem, tmp_path_factory):
    folder, random = tmp_path_factory.mktemp(problem), np.random.default_rng(6)
    for split, count in SIZES.items():
        hidden = LABELS if split == "test" else ()
        rows = [{name: value for name, value in row.items() if name not in hidden} for row in ROWS[problem](random, count)]
        (folder / f"{split}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return folder


@pytest.fixture(scope="module")
def flags(project, problem, data):
    """Flags of a run with dropout that does everything."""

    def flags(folder, **extra):
        files = {f"{split}_file": data / f"{split}.jsonl" for split in SIZES}
        how = {"num_train_steps": STEPS, "save_checkpoints_steps": EVERY, "learning_rate": 0.003, "log_every_n_steps": 1}
        own = {
            "task_name": "custom",
            **PROBLEMS.get(problem, {"problem": problem}),
            "do_eval": True,
            "do_predict": True,
            **files,
            **how,
        }
        given = project.flags(folder, do_train=True, **{**own, **extra})
        return [flag for flag in given if not flag.startswith("--data_dir=")]

    return flags


@pytest.fixture(scope="module")
def trained(flags, tmp_path_factory):
    folder = tmp_path_factory.mktemp("trained") / "out"
    families.run(flags(folder))
    return folder


def results(folder):
    """Returns all that a run came to, as bytes: weights and averages, metrics, files of predictions and for peft."""
    files = [path for pattern in ("predictions*", "eval_results.*", "adapter_*") for path in folder.glob(pattern)]
    assert len(files) >= 3
    prefixes = sorted(path.with_suffix("") for path in folder.rglob(f"model.ckpt-{STEPS}.index"))
    weights = {(prefix.relative_to(folder), name): value for prefix in prefixes for name, value in held(prefix).items()}
    return {**{path.name: path.read_bytes() for path in files}, **{key: value.tobytes() for key, value in weights.items()}}


SLOW = [pytest.param(name, marks=[pytest.mark.slow] * (name != "between steps")) for name in KILLS]  # two minutes


@pytest.mark.parametrize("kill", SLOW)
def test_a_run_goes_on_to_the_same_end(kill, flags, trained, tmp_path):
    killed = commands.run(flags(tmp_path / "out"), before=KILLS[kill])
    assert -killed.returncode in (signal.SIGKILL, signal.SIGXFSZ), killed.stderr
    assert not list(tmp_path.glob("out/predictions*"))
    families.run(flags(tmp_path / "out"))
    assert results(tmp_path / "out") == results(trained)
    assert len(families.losses(tmp_path / "out")) == STEPS


@pytest.fixture(scope="module")
def plain(flags, data, project):
    """Flags of a run without dropout that only trains, at one rate however many steps there are.

    At 0.003 rounding decides whether the loss of `choice` rises again.
    """
    config = families.without_dropout(data, project)
    constant = {"learning_rate_schedule": "constant", "warmup_proportion": 0.0, "bert_config_file": config}
    return functools.partial(flags, do_eval=False, do_predict=False, learning_rate=0.001, **constant)


def test_it_learns_and_parts_of_a_batch_add_up(plain, problem, tmp_path):
    if problem == "contrastive":
        pytest.skip("the loss compares the examples of a part")
    steps = 120 if problem in ("choice", "similarity") else 4  # that the others learn is shown by tests of their own
    families.run(plain(tmp_path / "whole", num_train_steps=steps))
    losses = families.losses(tmp_path / "whole")
    assert steps == 4 or np.mean(losses[-10:]) < 0.7 * np.mean(losses[:10])
    families.check_loss_of_parts(tmp_path / "parts", plain, tmp_path / "whole", steps=4)


def test_a_run_is_reported_and_a_batch_job_predicts_the_same(problem, trained, data, tmp_path):
    dev = json.loads((trained / "eval_results.json").read_text())["splits"]["dev"]
    assert dev["examples"] == SIZES["dev"]
    if problem not in SENTENCES:
        assert dev["panels"][0]["title"] in (trained / "report.html").read_text(encoding="utf-8")
    if problem in ("choice", "similarity"):  # others have layouts of their own, and tests
        output = tmp_path / "predictions.tsv"
        bert_tf.predict_files(checkpoint=trained, input=data / "test.jsonl", output=output)
        actual, expected = ([line.split("\t") for line in path.open()] for path in (output, trained / "predictions.tsv"))
        assert [row[0] for row in actual] == [row[0] for row in expected]
        numbers = [[float(number) for row in rows[1:] for number in row[-1].split()] for rows in (actual, expected)]
        np.testing.assert_allclose(*numbers, atol=1e-5)


def in_small_parts(moment=None):
    distillation._CHUNK = 16
    if moment is not None:
        die_at(moment)


@pytest.mark.slow  # six processes for each family
def test_a_student_goes_on_to_the_same_end(flags, data, tmp_path):
    """It also learns from the texts of test, which have no labels."""
    steps, deep = 6, write_project(tmp_path / "project", layers=2)
    model = {"bert_config_file": deep.bert_config_file, "init_checkpoint": deep.init_checkpoint}
    families.run(flags(tmp_path / "teacher", **model, num_train_steps=2, do_eval=False, do_predict=False))
    ways = {"teacher_layers": "0,1", "num_train_steps": steps, "save_checkpoints_steps": 2, "log_every_n_steps": 1}
    more = {"relation_weight": 0.5, "unlabelled": data / "test.jsonl"}
    given = [tmp_path / "teacher", *(f"--{name}={value}" for name, value in {**ways, **more}.items())]
    families.batch("distill", *given, f"--output_dir={tmp_path / 'whole'}", before=in_small_parts)
    computed, between = (
        Moment("bert_tf.extensions.distill.part", "_Outputs._computed", 2),
        MOMENTS["between steps"]._replace(call=4),
    )
    for moment in (computed, between):
        arguments = ["-m", "bert_tf", "distill", *given, f"--output_dir={tmp_path / 'parts'}"]
        killed = processes.finish(processes.start([*map(str, arguments)], before=functools.partial(in_small_parts, moment)))
        assert -killed.returncode == signal.SIGKILL, killed.stderr
    families.batch("distill", *given, f"--output_dir={tmp_path / 'parts'}", before=in_small_parts)
    assert commands.same_bits(commands.weights(tmp_path / "parts", steps), commands.weights(tmp_path / "whole", steps))
    assert np.isfinite(families.losses(tmp_path / "parts")).all()
    assert "Teacher and student" in (tmp_path / "parts" / "report.html").read_text(encoding="utf-8")
