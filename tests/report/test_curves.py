"""Which curves a page shows."""

from __future__ import annotations

import pytest

from bert_tf.report import curves, run_files
from bert_tf.runtime import memory_use
from tests.report import example

pytestmark = pytest.mark.usefixtures("_pictures_drawn_once")


@pytest.fixture
def run(tmp_path):
    return run_files.read([example.finished(tmp_path / "run")])[0]


def test_charts_of_what_is_logged(run):
    assert [chart.title for chart in curves.of_measures(curves.LEARNING, [run])] == ["Training loss", "Learning rate"]
    assert [chart.title for chart in curves.of_measures(curves.SPEED, [run])] == [
        "Throughput",
        "Time of a step",
        "Waiting for data",
    ]


def test_run_of_an_older_version_has_fewer(tmp_path):
    folder = example.begun(tmp_path)
    example.write_lines(folder / "metrics.jsonl", [{"step": 1, "loss": 0.5}])
    (run,) = run_files.read([folder])
    measures = (*curves.LEARNING, *curves.SPEED, *curves.MEMORY)
    assert [chart.title for chart in curves.of_measures(measures, [run])] == ["Training loss"]


def test_memory_over_the_run(run):
    (host,) = curves.of_measures(curves.MEMORY, [run])
    assert (host.title, host.unit, host.summary) == (
        "Memory of the host",
        "MiB",
        "highest 950 at step 20, last 950 at step 20",
    )


def test_memory_of_a_gpu(tmp_path):
    folder = example.begun(tmp_path)
    lines = [{"step": step, "gpu_memory_mb": 500, "gpu_memory_peak_mb": 600 + step} for step in (1, 2)]
    example.write_lines(folder / "metrics.jsonl", lines)
    (run,) = run_files.read([folder])
    assert [chart.title for chart in curves.of_measures(curves.MEMORY, [run])] == [
        "Memory of the GPU",
        "Peak memory of the GPU",
    ]
    assert curves.figures(run)["peak memory of the GPU, highest"] == (602, "MiB")


def test_names_of_memory_are_those_that_are_logged():
    logged = {memory_use.HOST, memory_use.GPU, memory_use.GPU_PEAK}
    assert {measure.key for measure in curves.MEMORY} == logged


def test_summary_in_numbers(run):
    loss, rate = curves.of_measures(curves.LEARNING, [run])
    assert loss.summary == "lowest 0.5 at step 20, last 0.5 at step 20"
    assert rate.summary == "highest 2e-05 at step 10, last 1e-05 at step 20"


def test_seconds_become_milliseconds(run):
    waiting = curves.of_measures(curves.SPEED, [run])[-1]
    assert (waiting.unit, waiting.summary) == ("ms", "median 2, lowest 1 at step 10, highest 3 at step 20")


def test_evaluations_while_it_trained(run):
    assert [(chart.title, chart.summary) for chart in curves.of_evaluations([run])] == [
        ("Dev accuracy", "best 0.8 at step 20, last 0.8"),
        ("Dev loss", "best 0.6 at step 10, last 0.7"),
    ]


def test_several_runs_share_a_chart(run):
    (loss, _), (alone, _) = (curves.of_measures(curves.LEARNING, runs) for runs in ([run, run], [run]))
    assert loss.picture != alone.picture
    assert loss.summary == ""


def test_many_values_are_smoothed(tmp_path):
    folder = example.begun(tmp_path)
    example.write_lines(folder / "metrics.jsonl", [{"step": step, "loss": step % 2} for step in range(1, 61)])
    (chart,) = curves.of_measures(curves.LEARNING, run_files.read([folder]))
    assert "running mean over 6 logged values" in chart.caption


def test_training_time_by_hand(run):
    # 10 steps of 8 examples at 40 a second, and 10 at 20.
    assert curves.training_seconds(run) == pytest.approx(2 + 4)


def test_training_time_is_unknown_without_a_batch(tmp_path):
    assert curves.training_seconds(run_files.read([example.begun(tmp_path, train_batch_size=None)])[0]) is None


def test_figures_of_a_run(run):
    assert {name: figure[0] for name, figure in curves.figures(run).items()} == pytest.approx(
        {
            "throughput, median": 30,
            "time of a step, median": 300,
            "waiting for data, median": 2,
            "memory of the host, highest": 950,
        }
    )
