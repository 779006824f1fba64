"""The commands that read what a run has recorded, profile, and memory report, peak and diff; and the forecast of its memory."""

import csv
import json

import pytest

import bert_tf
from bert_tf.config import BertConfig
from bert_tf.extensions.profile import operations_file
from tests.profiling import recorded
from tests.profiling.excerpt import REQUESTED, TRACE
from tests.report import example


@pytest.fixture
def trace(tmp_path):
    path = tmp_path / "trace.txt"
    path.write_text(TRACE)
    return path


@pytest.fixture
def live(tmp_path):
    path = tmp_path / "live memory.tsv"
    path.write_text(example.LIVE)
    return path


def test_profile_prints_all_tables_or_one_in_part(call, tmp_path):
    (tmp_path / "profile").mkdir()
    operations_file.write(tmp_path / "profile" / "operations.json", recorded.record(peak=0.1))
    status, out, err = call("profile", tmp_path)
    assert (status, err) == (0, "")
    heads = [line.split()[0] for line in out.splitlines() if line.startswith(("model", "phase", "type ", "scope", "ms/step"))]
    assert heads == ["model", "phase", "type", "scope", "ms/step"]
    assert str(bert_tf.profile(tmp_path)) + "\n" == out
    found = json.loads(call("profile", "--table=groups", tmp_path, "--depth=1", "--format=json")[1])
    assert [row["path"] for row in found.pop("groups")] == ["bert", "(clip)"]
    assert not found
    found = json.loads(call("profile", tmp_path, "--top=2", "--format=json", "--matmul_peak_gflops=0.0576")[1])
    names = [recorded.BATCH, recorded.PRODUCT]
    assert [row["name"] for row in found["ops"]] == [row.name for row in bert_tf.profile(tmp_path, top=2).ops] == names
    assert found["model"]["total"]["time_us"] == 56
    assert found["model"]["total"]["of_peak"] == pytest.approx(1)  # of the given peak, not of the measured one
    assert call("profile", tmp_path, "--table=ops", "--top=2")[1].count("\n") == 4  # head, two rows, how many are left
    rows = list(csv.DictReader(call("profile", tmp_path, "--table=ops", "--format=tsv")[1].splitlines(), delimiter="\t"))
    assert len(rows) == 9
    row = rows[1]
    assert (row["name"], row["scope"], float(row["time_us"]), row["uses"]) == (recorded.PRODUCT, "bert/pooler/dense", 20, "")


def test_a_trace_is_summed_and_two_are_compared_and_the_peak_of_a_step_found(call, trace, live):
    status, out, err = call("memory", "report", trace)
    assert (status, err) == (0, "")
    assert out.startswith("18 operations, 17 outputs")
    assert str(bert_tf.memory_report(trace)) == out
    found = json.loads(call("memory", "report", "--json", trace, "--depth=1", "--top=3")[1])
    assert found["requested_bytes"] == REQUESTED
    assert {scope.count("/") for scope in found["by_scope"]} == {0}
    assert len(found["largest"]) == 3
    assert json.loads(call("memory", "diff", trace, trace, "--json")[1])["only_b"]["count"] == 0
    assert "outputs of another size: 0" in call("memory", "diff", trace, trace)[1]
    assert bert_tf.memory_diff(trace, trace).value["only_b"]["count"] == 0
    head = "step 8, cpu: 210 MB at the peak, 2.0 ms after the first allocation"
    assert call("memory", "peak", live)[1].startswith(head)
    status, out, err = call("memory", "peak", live, "--json", "--top=1", "--allocator=cpu")
    found = json.loads(out)
    assert (status, err, found["peak_bytes"], len(found["largest"])) == (0, "", 200 << 20, 1)


@pytest.mark.parametrize(("action", "count"), [("report", 2), ("peak", 1)])
def test_pictures_leave_standard_output_to_the_report(call, live, trace, tmp_path, action, count):
    pytest.importorskip("matplotlib")
    path = {"report": trace, "peak": live}[action]
    status, out, err = call("memory", action, path, "--json", f"--pictures={tmp_path / 'pictures'}")
    pictures = sorted((tmp_path / "pictures").iterdir())
    assert (status, bool(json.loads(out)), len(pictures)) == (0, True, count)
    assert sorted(err.splitlines()) == [f"wrote {picture}" for picture in pictures]
    assert all(picture.read_bytes().startswith(b"\x89PNG") for picture in pictures)
    getattr(bert_tf, f"memory_{action}")(path, pictures=tmp_path / "again")
    assert len(list((tmp_path / "again").iterdir())) == count


@pytest.mark.parametrize(
    ("action", "kind", "other"), [("report", "live", "peak"), ("diff", "live", "peak"), ("peak", "trace", "report")]
)
def test_file_of_another_action(call, live, trace, action, kind, other):
    path = {"live": live, "trace": trace}[kind]
    files = [path] * (2 if action == "diff" else 1)
    quoted = f"'{path}'" if " " in str(path) else path
    assert call("memory", action, *files) == (2, "", f"error: {path}: is read by: python -m bert_tf memory {other} {quoted}\n")


@pytest.mark.parametrize(
    ("action", "text", "problem"),
    [
        ("report", "SrcNode a 0\n", "no operation has any output: there is nothing to draw"),
        ("report", "SrcNode a 1\nOutput 0 0 0 cpu 1\n", "no operation has any output: there is nothing to draw"),
        ("peak", "# live memory of step 1\n# allocator\tcpu\n", "nothing was alive on cpu: there is nothing to draw"),
    ],
)
def test_nothing_to_draw(call, tmp_path, action, text, problem):
    path = tmp_path / "file"
    path.write_text(text)
    status, out, err = call("memory", action, path, f"--pictures={tmp_path / 'pictures'}")
    assert (status, err) == (2, f"error: {path}: {problem}\n")
    assert out  # the report is there all the same
    assert not (tmp_path / "pictures").exists()


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ("memory repot", "unknown action 'repot'; did you mean report? (known: diff, peak, plan, report)"),
        ("memory report", "memory report: FILE missing: python -m bert_tf memory report FILE"),
        ("memory diff a", "memory diff: B missing: python -m bert_tf memory diff A B"),
        ("memory report none.txt", "none.txt: no such file"),
        ("memory peak none.tsv", "none.tsv: no such file"),
        ("memory report x --dept=1", "Unknown command line flag 'dept'"),
        ("profile", "profile: FOLDER missing: python -m bert_tf profile FOLDER"),
        ("profile a b", "profile: 2 names given"),
        ("profile " + "n" * 300, "nnn: File name too long"),
        ("profile none", "none: no such folder"),
        ("profile .", ".: no profile/operations.json; train with --profile_steps=20-30 to record some steps"),
        ("profile damaged", "damaged/profile/operations.json: "),
        ("profile . --format=tsv", "--format=tsv: holds one table; name it, for example --table=ops"),
    ],
)
def test_problems_are_one_line(call, monkeypatch, tmp_path, line, problem):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "damaged" / "profile").mkdir(parents=True)
    (tmp_path / "damaged" / "profile" / "operations.json").write_text("{")
    status, out, err = call(*line.split())
    assert (status, out, err.count("\n")) == (2, "", 1)
    assert problem in err


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
    status, found = plan()
    assert (status, found["fits"], found["combinations"]) == (0, True, [])
    assert found["peak_bytes"] == sum(found["by_part"].values())
    assert found["peak_bytes"] + found["fragmentation_bytes"] == found["needed_bytes"] < found["memory_bytes"] == 5175 * MIB
    largest = found["largest_batch"]
    assert list(largest) == ["64", "128", "256", "320", "384", "512"]
    assert sorted(largest.values(), reverse=True) == list(largest.values())
    status, found = plan(train_batch_size=2 * largest["64"])
    assert (status, found["fits"]) == (1, False)
    assert plan(train_batch_size=2 * largest["64"], gradient_accumulation_steps=4)[0] == 0
    path = tmp_path / "tiny.json"
    path.write_text(BertConfig.tiny().to_json())
    found = plan(bert_config_file=path, max_seq_length=None)[1]
    assert (found["max_seq_length"], list(found["largest_batch"])) == (64, ["64"])
    without, found = (plan(train_batch_size=60, max_predictions_per_seq=n)[1] for n in (0, 20))
    scores = 60 * 20 * BASE.vocab_size * 4
    assert found["by_part"]["activations"] > without["by_part"]["activations"] + scores
    assert plan(optimizer="lamb")[1]["peak_bytes"] > plan()[1]["peak_bytes"]  # it updates the whole table


SAME = {"recompute": True, "precision": "bfloat16", "padding": 0.25}
ALL = {**SAME, "train_batch_size": 64, "gradient_accumulation_steps": 2, "freeze": "embeddings,0-3", "num_gpus": 2}
ALL |= {"eval_every_n_steps": 100, "gpu_memory_growth": True}
OF_ALL = {**SAME, "micro_batches": 2, "replicas": 2, "frozen": ["0", "1", "2", "3", "embeddings"]}
OF_ALL |= {"evaluates": True, "growth": True}
PUBLISHED = dict.fromkeys(("pack_tokens", "last_layer_cls_only", "custom_gradients", "defer_embeddings"), False)


@pytest.mark.parametrize(
    ("flags", "expected"),
    [
        (ALL, OF_ALL),
        ({"task_name": "SQuAD"}, {"head": [[2, 768], [2]], "last_layer_cls_only": False}),
        ({"task_name": "MNLI"}, {"head": [[3, 768], [3]], "last_layer_cls_only": True}),
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
    found = bert_tf.memory_plan(bert_config_file=config_file, gpu_memory_mb=5175, **given)
    assert (str(found), found.fits) == (out, False)
    assert "<pre>12 layers" in found._repr_html_()
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
        ({"freeze": "12"}, "--freeze: layer 12: the model has 12 layers"),
        ({"gradient_accumulation_steps": 13}, "--train_batch_size=12: fewer examples than micro-batches"),
        ({"max_predictions_per_seq": 20, "task_name": "SQuAD"}, "give one of them"),
    ],
)
def test_problems_of_a_plan_are_one_line(run, flags, problem):
    status, out, err = run(**flags)
    assert (status, out, err.count("\n")) == (2, "", 1)
    assert problem in err
