"""The commands that read what a run has recorded, profile, and memory report, peak and diff."""

import csv
import json

import pytest

import bert_tf
from bert_tf.extensions.profile import operations_file
from tests.extensions.report import example
from tests.profiling import recorded
from tests.profiling.excerpt import REQUESTED, TRACE


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
    tables = json.loads(call("profile", "--table=groups", tmp_path, "--depth=1", "--format=json")[1])
    assert [row["path"] for row in tables.pop("groups")] == ["bert", "(clip)"]
    assert not tables
    tables = json.loads(call("profile", tmp_path, "--top=2", "--format=json", "--matmul_peak_gflops=0.0576")[1])
    names = [recorded.BATCH, recorded.PRODUCT]
    assert [row["name"] for row in tables["ops"]] == [row.name for row in bert_tf.profile(tmp_path, top=2).ops] == names
    assert tables["model"]["total"]["time_us"] == 56
    assert tables["model"]["total"]["of_peak"] == pytest.approx(1)  # of the given peak, not of the measured one
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
    printed = json.loads(call("memory", "report", "--json", trace, "--depth=1", "--top=3")[1])
    assert printed["requested_bytes"] == REQUESTED
    assert {scope.count("/") for scope in printed["by_scope"]} == {0}
    assert len(printed["largest"]) == 3
    assert json.loads(call("memory", "diff", trace, trace, "--json")[1])["only_b"]["count"] == 0
    assert "outputs of another size: 0" in call("memory", "diff", trace, trace)[1]
    assert bert_tf.memory_diff(trace, trace).value["only_b"]["count"] == 0
    head = "step 8, cpu: 210 MB at the peak, 2.0 ms after the first allocation"
    assert call("memory", "peak", live)[1].startswith(head)
    status, out, err = call("memory", "peak", live, "--json", "--top=1", "--allocator=cpu")
    printed = json.loads(out)
    assert (status, err, printed["peak_bytes"], len(printed["largest"])) == (0, "", 200 << 20, 1)


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
        ("profile . --table=groups --top=3", "--top does nothing with --table=groups; leave it out"),
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
