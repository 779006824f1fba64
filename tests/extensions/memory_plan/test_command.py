"""The forecast of a run's memory, as people ask for it."""

import json

import pytest

import bert_tf
from bert_tf.config import BertConfig

BASE = BertConfig(vocab_size=30522)
MIB = 2**20


@pytest.fixture
def config_file(tmp_path):
    path = tmp_path / "bert_config.json"
    path.write_text(BASE.to_json())
    return path


@pytest.fixture
def run(call, config_file):
    """Returns status, output and errors of a command line; None leaves a flag out."""

    def run(*words, **flags):
        values = {"bert_config_file": config_file, "max_seq_length": 64, "train_batch_size": 12, "gpu_memory_mb": 5175, **flags}
        line = [f"--{name}={value}" for name, value in values.items() if value is not None]
        return call("memory", "plan", *line, *words)

    return run


@pytest.fixture
def plan(run):
    def plan(**flags):
        status, out, _ = run("--json", **flags)
        return status, json.loads(out)

    return plan


def test_whether_it_fits_is_the_status_and_what_takes_memory(plan, tmp_path):
    status, said = plan()
    assert (status, said["fits"], said["combinations"]) == (0, True, [])
    assert said["peak_bytes"] == sum(said["by_part"].values())
    assert said["peak_bytes"] + said["fragmentation_bytes"] == said["needed_bytes"] < said["memory_bytes"] == 5175 * MIB
    largest = said["largest_batch"]
    assert list(largest) == ["64", "128", "256", "320", "384", "512"]
    assert sorted(largest.values(), reverse=True) == list(largest.values())
    assert list(plan(max_seq_length=200)[1]["largest_batch"]) == ["64", "128", "200", "256", "320", "384", "512"]
    status, said = plan(train_batch_size=2 * largest["64"])
    assert (status, said["fits"]) == (1, False)
    assert plan(train_batch_size=2 * largest["64"], gradient_accumulation_steps=4)[0] == 0
    path = tmp_path / "tiny.json"
    path.write_text(BertConfig.tiny().to_json())
    said = plan(bert_config_file=path, max_seq_length=None)[1]
    assert (said["max_seq_length"], list(said["largest_batch"])) == (64, ["64"])
    without, said = (plan(train_batch_size=60, max_predictions_per_seq=n)[1] for n in (0, 20))
    scores = 60 * 20 * BASE.vocab_size * 4
    assert said["by_part"]["activations"] > without["by_part"]["activations"] + scores
    assert plan(optimizer="lamb")[1]["peak_bytes"] > plan()[1]["peak_bytes"]  # it updates the whole table


SAME = {"rows_per_example": 2.5, "recompute": True, "precision": "bfloat16", "padding": 0.25}
ALL = {**SAME, "train_batch_size": 64, "gradient_accumulation_steps": 2, "freeze": "embeddings,0-3", "num_gpus": 2}
ALL |= {"eval_every_n_steps": 100, "gpu_memory_growth": True}
OF_ALL = {**SAME, "micro_batches": 2, "replicas": 2, "frozen": ["0", "1", "2", "3", "embeddings"]}
OF_ALL |= {"evaluates": True, "growth": True, "most_rows": 3}
PUBLISHED = dict.fromkeys(("pack_tokens", "last_layer_cls_only", "custom_gradients", "defer_embeddings"), False)


@pytest.mark.parametrize(
    ("flags", "expected"),
    [
        (ALL, OF_ALL),
        ({"task_name": "SQuAD"}, {"head": [[2, 768], [2]], "reads_tokens": True}),
        ({"task_name": "MNLI"}, {"head": [[3, 768], [3]], "reads_tokens": False}),
        ({"published_layout": True, "fused_adam": True}, {**PUBLISHED, "fused_adam": True}),
        ({"task_name": "Pretraining"}, {"places": 20, "tied_words": True}),
        ({"task_name": "Pretraining", "max_predictions_per_seq": 80}, {"places": 80}),
    ],
)
def test_flags_of_training_reach_the_forecast(plan, flags, expected):
    options = plan(**flags)[1]["options"]
    assert {name: options[name] for name in expected} == expected


def test_a_text_names_levers_and_the_cheapest_combinations(run, plan, config_file):
    given = {"train_batch_size": 64, "max_seq_length": 128}
    status, out, err = run(**given)
    assert (status, err) == (1, "")
    lines = out.splitlines()
    assert lines[0] == "12 layers, hidden 768, 12 heads, vocabulary 30522"
    assert any(line.startswith("does not fit: ") for line in lines)
    assert any(line.endswith(" MiB are for rounding and fragmentation") for line in lines)
    assert any(line.startswith("--recompute ") for line in lines)
    assert run(gpu_memory_mb=50000)[1].count("fits, ") == 1
    rows = run("--rows_per_example=2.5", gpu_memory_mb=50000)[1]
    assert rows.splitlines()[1] == "sequence 64, batch 12 with 2.5 rows each; memory 50000 MiB"
    planned = bert_tf.memory_plan(bert_config_file=config_file, gpu_memory_mb=5175, **given)
    assert (str(planned), planned.fits) == (out, False)
    assert "<pre>12 layers" in planned._repr_html_()
    first, second = plan(**given)[1]["combinations"]
    assert first["flags"][0].startswith("--gradient_accumulation_steps=")
    assert (second["flags"], second["changes"]) == (["--recompute"], [])
    assert first["peak"] <= 5175 * MIB
    assert first["slowdown"] < second["slowdown"]
    head, row, *_ = out.partition("what fits, ")[2].splitlines()
    assert head.startswith("the cheapest first")
    assert row.startswith(first["flags"][0])
    assert row.endswith(f"{first['slowdown']:.2f} x  the same")
    assert run(gpu_memory_mb=100)[1].endswith("no combination of flags makes it fit: use a smaller model\n")


@pytest.mark.parametrize(
    ("flags", "problem"),
    [
        ({"gpu_memory_mb": None}, "--gpu_memory_mb is required: memory for tensors per device in MiB, as logged by training\n"),
        ({"bert_config_file": None}, "--bert_config_file is required: model configuration\n"),
        ({"bert_config_file": "none.json"}, "none.json: cannot read the configuration"),
        ({"max_seq_length": 513}, "--max_seq_length=513: must be 1 to 512, the positions of the model"),
        ({"padding": 1.0}, "--padding=1: must be at least 0"),
        ({"rows_per_example": 0.5}, "--rows_per_example=0.5: must be at least 1"),
        ({"freeze": "12"}, "--freeze: layer 12: the model has 12 layers"),
        ({"host_embeddings": True, "num_gpus": 2}, "--host_embeddings is for one device, as --place: leave out --num_gpus\n"),
        ({"gradient_accumulation_steps": 13}, "--train_batch_size=12: fewer examples than micro-batches"),
        ({"max_predictions_per_seq": 20, "task_name": "SQuAD"}, "give one of them"),
        (
            {"task_name": "Custom"},
            "--task_name=Custom: leave it out for classes of texts; else name a task of that kind, such as SQuAD",
        ),
    ],
)
def test_problems_of_a_plan_are_one_line(run, flags, problem):
    status, out, err = run(**flags)
    assert (status, out, err.count("\n")) == (2, "", 1)
    assert problem in err
