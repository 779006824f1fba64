from __future__ import annotations

import json
import subprocess
import sys

import pytest

from bert_tf.commands import memory_plan
from bert_tf.config import BertConfig

BASE = BertConfig(vocab_size=30522)


@pytest.fixture
def config_file(tmp_path):
    path = tmp_path / "bert_config.json"
    path.write_text(BASE.to_json())
    return path


def run(capsys, *argv):
    status = memory_plan.main(["plan", *map(str, argv)])
    return status, *capsys.readouterr()


def plan(capsys, config_file, **given):
    values = {"bert_config_file": config_file, "max_seq_length": 64, "train_batch_size": 12, "gpu_memory_mb": 5175, **given}
    status, out, _ = run(capsys, *(f"--{name}={value}" for name, value in values.items()), "--json")
    return status, json.loads(out)


def test_what_fits_has_status_0(capsys, config_file):
    status, found = plan(capsys, config_file)
    assert status == 0
    assert found["fits"]
    assert found["peak_bytes"] == sum(found["by_part"].values())
    assert found["peak_bytes"] + found["fragmentation_bytes"] == found["needed_bytes"] < found["memory_bytes"] == 5175 * 2**20


def test_what_does_not_fit_has_status_1(capsys, config_file):
    status, found = plan(capsys, config_file, train_batch_size=1000)
    assert status == 1
    assert not found["fits"]


def test_accumulation_makes_it_fit(capsys, config_file):
    largest = plan(capsys, config_file)[1]["largest_batch"]["64"]
    assert plan(capsys, config_file, train_batch_size=2 * largest)[0] == 1
    assert plan(capsys, config_file, train_batch_size=2 * largest, gradient_accumulation_steps=4)[0] == 0


def test_largest_batches_fall_with_the_length(capsys, config_file):
    largest = plan(capsys, config_file)[1]["largest_batch"]
    assert list(largest) == ["64", "128", "256", "320", "384", "512"]
    assert sorted(largest.values(), reverse=True) == list(largest.values())


def test_the_head_of_a_task_reaches_the_forecast(capsys, config_file):
    options = plan(capsys, config_file, task_name="SQuAD")[1]["options"]
    assert (options["head"], options["last_layer_cls_only"]) == ([[2, 768], [2]], False)
    options = plan(capsys, config_file, task_name="MNLI")[1]["options"]
    assert (options["head"], options["last_layer_cls_only"]) == ([[3, 768], [3]], True)


def test_flags_of_training_reach_the_forecast(capsys, config_file):
    given = {
        "train_batch_size": 64,
        "max_seq_length": 128,
        "gradient_accumulation_steps": 2,
        "recompute": True,
        "precision": "bfloat16",
        "freeze": "embeddings,0-3",
        "padding": 0.25,
        "num_gpus": 2,
        "eval_every_n_steps": 100,
        "gpu_memory_growth": True,
    }
    options = plan(capsys, config_file, **given)[1]["options"]
    assert (options["micro_batches"], options["replicas"], options["recompute"], options["precision"]) == (
        2,
        2,
        True,
        "bfloat16",
    )
    assert options["frozen"] == ["0", "1", "2", "3", "embeddings"]
    assert options["padding"] == 0.25
    assert options["evaluates"]
    assert options["growth"]


def test_the_published_layout_is_all_off_but_what_is_given(capsys, config_file):
    options = plan(capsys, config_file, published_layout=True, fused_adam=True)[1]["options"]
    assert not any(options[name] for name in ("pack_tokens", "last_layer_cls_only", "custom_gradients", "defer_embeddings"))
    assert options["fused_adam"]


def test_says_it_in_words(capsys, config_file):
    flags = [f"--bert_config_file={config_file}", "--max_seq_length=128", "--train_batch_size=64"]
    status, out, err = run(capsys, *flags, "--gpu_memory_mb=5175")
    assert (status, err) == (1, "")
    lines = out.splitlines()
    assert lines[0] == "12 layers, hidden 768, 12 heads, vocabulary 30522"
    assert any(line.startswith("does not fit: ") for line in lines)
    assert any(line.endswith(" MiB are for rounding and fragmentation") for line in lines)
    assert any(line.startswith("--recompute ") for line in lines)
    assert run(capsys, *flags, "--gpu_memory_mb=50000")[1].count("fits, ") == 1


def test_names_the_cheapest_combinations_where_it_does_not_fit(capsys, config_file):
    given = {"train_batch_size": 64, "max_seq_length": 128}
    first, second = plan(capsys, config_file, **given)[1]["combinations"]
    assert first["flags"][0].startswith("--gradient_accumulation_steps=")
    assert (second["flags"], second["changes"]) == (["--recompute"], [])
    assert first["peak"] <= 5175 * 2**20
    assert first["slowdown"] < second["slowdown"]
    flags = [f"--bert_config_file={config_file}", "--max_seq_length=128", "--train_batch_size=64", "--gpu_memory_mb=5175"]
    head, row, *_ = run(capsys, *flags)[1].partition("what fits, ")[2].splitlines()
    assert head.startswith("the cheapest first")
    assert row.startswith(first["flags"][0])
    assert row.endswith(f"{first['slowdown']:.2f} x  the same")


def test_names_no_combination_where_none_is_needed_or_none_helps(capsys, config_file):
    assert plan(capsys, config_file)[1]["combinations"] == []
    out = run(capsys, f"--bert_config_file={config_file}", "--gpu_memory_mb=100")[1]
    assert out.endswith("no combination of flags makes it fit: take a smaller model\n")


def test_a_short_model_has_no_long_lengths(capsys, tmp_path):
    path = tmp_path / "tiny.json"
    path.write_text(BertConfig.tiny().to_json())
    assert list(plan(capsys, path, max_seq_length=16)[1]["largest_batch"]) == ["64"]
    found = json.loads(run(capsys, f"--bert_config_file={path}", "--gpu_memory_mb=5175", "--json")[1])
    assert found["max_seq_length"] == 64


@pytest.mark.parametrize(
    ("given", "problem"),
    [
        ({"gpu_memory_mb": None}, "--gpu_memory_mb is required"),
        ({"bert_config_file": None}, "--bert_config_file is required"),
        ({"bert_config_file": "none.json"}, "none.json: cannot read the configuration"),
        ({"max_seq_length": 513}, "--max_seq_length=513: the model knows 1 to 512 positions"),
        ({"padding": 1.0}, "--padding=1: is a share"),
        ({"padding": "nan"}, "--padding=nan: not a number"),
        ({"train_batch_size": "auto"}, "train_batch_size=auto"),
        ({"freeze": "12"}, "--freeze: layer 12: the model has 12 layers"),
        ({"gradient_accumulation_steps": 13}, "--train_batch_size=12: fewer examples than micro-batches"),
        ({"train_batch_size": 0}, "train_batch_size"),
        ({"precision": "float8"}, "unknown value 'float8'"),
    ],
)
def test_problems_are_one_line(capsys, config_file, given, problem):
    values = {"bert_config_file": config_file, "max_seq_length": 64, "train_batch_size": 12, "gpu_memory_mb": 5175, **given}
    status, out, err = run(capsys, *(f"--{name}={value}" for name, value in values.items() if value is not None))
    assert (status, out) == (2, "")
    assert problem in err
    assert len(err.splitlines()) == 1


def test_help_names_every_flag(capsys):
    status, out, _ = run(capsys, "--help")
    assert status == 0
    assert all(row.name in out for row in memory_plan.FLAGS)


def test_is_an_action_of_the_memory_command(config_file):
    command = [sys.executable, "-m", "bert_tf", "memory", "plan", "--gpu_memory_mb=400", f"--bert_config_file={config_file}"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "does not fit" in done.stdout


def test_hidden_words_bring_the_head_of_pretraining(capsys, config_file):
    without, found = (plan(capsys, config_file, train_batch_size=60, max_predictions_per_seq=n)[1] for n in (0, 20))
    assert (found["options"]["places"], found["options"]["tied_words"]) == (20, True)
    scores = 60 * 20 * BASE.vocab_size * 4
    assert found["by_part"]["activations"] > without["by_part"]["activations"] + scores


def test_hidden_words_and_a_task_exclude_each_other(capsys, config_file):
    flags = {"bert_config_file": config_file, "gpu_memory_mb": 5175, "max_predictions_per_seq": 20, "task_name": "SQuAD"}
    status, _, err = run(capsys, *(f"--{name}={value}" for name, value in flags.items()))
    assert (status, err.count("\n")) == (2, 1)
    assert "give one of them" in err


def test_pretraining_by_name_has_the_head_of_pretraining(capsys, config_file):
    named, counted = plan(capsys, config_file, task_name="Pretraining"), plan(capsys, config_file, max_predictions_per_seq=20)
    assert named == counted
    more = plan(capsys, config_file, task_name="Pretraining", max_predictions_per_seq=80)[1]
    assert more["options"]["places"] == 80


def test_lamb_updates_the_whole_table(capsys, config_file):
    adamw, lamb = (plan(capsys, config_file, optimizer=name)[1] for name in ("adamw", "lamb"))
    assert (adamw["options"]["lamb"], lamb["options"]["lamb"]) == (False, True)
    assert lamb["peak_bytes"] > adamw["peak_bytes"]
