"""Which curves a page shows."""

import pytest

from bert_tf.extensions.report import curves, run_files
from bert_tf.runtime import memory
from tests.extensions.report import example

pytestmark = pytest.mark.usefixtures("_pictures_drawn_once")


@pytest.fixture
def run(tmp_path):
    return run_files.read_runs([example.finished(tmp_path / "run")])[0]


def of_measures(measures, *runs):
    return curves.of_measures(measures, run_files.groups(runs))


def rows(chart):
    return chart["spec"]["data"]["values"]


def logged(folder, lines):
    example.begun(folder)
    example.write_lines(folder / "metrics.jsonl", lines)
    (run,) = run_files.read_runs([folder])
    return run


def test_charts_of_what_is_logged(run):
    measures = (*curves.LEARNING, *curves.SPEED, *curves.MEMORY)
    assert [tuple(chart[key] for key in ("title", "unit", "summary", "smoothing")) for chart in of_measures(measures, run)] == [
        ("Training loss", "", "lowest 0.5 at step 20, last 0.5 at step 20", ""),
        ("Learning rate", "", "highest 2e-05 at step 10, last 1e-05 at step 20", ""),
        ("Throughput", "examples/s", "median 30, lowest 20 at step 20, highest 40 at step 10", ""),
        ("Time of a step", "ms", "median 300, lowest 200 at step 10, highest 400 at step 20", ""),
        ("Waiting for data", "ms", "median 2, lowest 1 at step 10, highest 3 at step 20", ""),
        ("Memory of the host", "MiB", "highest 950 at step 20, last 950 at step 20", ""),
    ]
    assert [(chart["title"], chart["summary"]) for chart in curves.of_evaluations(run_files.groups([run]))] == [
        ("Dev accuracy", "best 0.8 at step 20, last 0.8"),
        ("Dev loss", "best 0.6 at step 10, last 0.7"),
    ]


def test_memory_of_a_gpu(tmp_path):
    run = logged(tmp_path, [{"step": step, "gpu_memory_mb": 500, "gpu_memory_peak_mb": 600 + step} for step in (1, 2)])
    assert [chart["title"] for chart in of_measures(curves.MEMORY, run)] == ["Memory of the GPU", "Peak memory of the GPU"]
    assert curves.figures(run)["peak memory of the GPU, highest"] == (602, "MiB")
    assert {measure.key for measure in curves.MEMORY} == {memory.HOST, memory.GPU, memory.GPU_PEAK}


def test_several_runs_share_a_chart_and_seeds_of_a_series_a_line(run, tmp_path):
    (other,) = run_files.read_runs([example.begun(tmp_path / "other")])
    (loss, _) = of_measures(curves.LEARNING, run, other)
    assert [(row["name"], row["line"]) for row in rows(loss)] == [("run", 0), ("other", 1)]
    assert loss["summary"] == ""
    for seed in (1, 2):
        example.finished(tmp_path / "series" / f"seed-{seed}", seed=seed)
    groups = run_files.groups(run_files.read_runs([tmp_path / "series"]))
    for chart in (*curves.of_measures(curves.LEARNING, groups), *curves.of_evaluations(groups)):
        assert [(row["name"], row["line"]) for row in rows(chart)] == [("series", 0)] * 2


def test_long_run_is_smoothed_and_says_what_a_point_is(tmp_path):
    run = logged(tmp_path, [{"step": step, "loss": 1.0} for step in range(1, 2401)])
    (chart,) = of_measures(curves.LEARNING, run)
    assert chart["smoothing"] == "Bold: smoothed. Faint: raw values."
    assert chart["caption"].endswith("A point is the mean of 3 logged values.")


@pytest.mark.parametrize(
    ("schedule", "steps"),
    [
        ({"train_examples": 80}, 10),  # in batches of 8
        ({"train_examples": 80, "train_rows": 120}, 15),
        *((unknown, None) for unknown in (None, {}, {"train_examples": 0}, {"train_examples": "x"})),
        ({"train_examples": 80, "phase2_steps": 5}, None),
    ],
)
def test_steps_of_an_epoch(tmp_path, schedule, steps):
    folder = example.begun(tmp_path)
    example.write_json(folder / "run_config.json", {**example.record(), "schedule": schedule})
    (run,) = run_files.read_runs([folder])
    assert rows(of_measures(curves.LEARNING, run)[0])[0]["steps_an_epoch"] == curves.steps_an_epoch(run) == steps


def test_each_task_has_its_evaluations(tmp_path):
    runs = run_files.read_runs([example.finished(tmp_path / task, task_name=task) for task in ("RTE", "MRPC")])
    charts = [(chart["title"], len(rows(chart))) for chart in curves.of_evaluations(run_files.groups(runs))]
    assert charts == [(f"Dev {name}, {task}", 1) for task in ("RTE", "MRPC") for name in ("accuracy", "loss")]


def test_training_time_is_that_of_steps_without_what_happens_between_them(tmp_path):
    run = logged(
        tmp_path, [{"step": step, "batch_cost": seconds, "examples_per_second": 1} for step, seconds in ((10, 0.2), (15, 0.4))]
    )
    assert curves.training_seconds(run) == pytest.approx(10 * 0.2 + 5 * 0.4)
    assert curves.training_seconds(logged(tmp_path, [{"step": 10, "examples_per_second": 1}])) is None


def test_figures_of_a_run(run):
    values = {name: figure[0] for name, figure in curves.figures(run).items()}
    speed = {"throughput, median": 30, "time of a step, median": 300, "waiting for data, median": 2}
    assert values == pytest.approx({**speed, "memory of the host, highest": 950})
