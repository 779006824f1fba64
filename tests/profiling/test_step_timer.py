import pytest

from bert_tf.profiling.step_timer import Spread, StepTimer, StepTimes


def timer_of(*batch_costs, warm_up_steps=2, **settings):
    timer = StepTimer(batch_size=4, warm_up_steps=warm_up_steps, **settings)
    for seconds in batch_costs:
        timer.add(StepTimes(seconds, reader=seconds / 4, communication=seconds / 8, lead=seconds / 5, tokens=10))
    return timer


def test_a_summary_worked_out_by_hand():
    summary = timer_of(30.0, 10.0, 1.0, 2.0, 3.0).summary()
    assert (summary.steps, summary.first_steps, summary.first_seconds) == (3, 2, 40.0)
    # Percentiles lie between neighbours: the 90th of 1, 2, 3 is eight tenths of the way from 2 to 3.
    assert summary.batch == Spread(mean=2.0, p50=2.0, p90=pytest.approx(2.8), p99=pytest.approx(2.98))
    assert summary.reader.mean == 0.5
    assert summary.communication.mean == 0.25
    assert summary.lead.mean == pytest.approx(0.4)
    assert (summary.examples_per_second, summary.tokens_per_second) == (12 / 6, 30 / 6)


def test_a_summary_without_steps_after_the_first_and_with_a_traced_step():
    timer = timer_of(30.0, 9.0)
    summary = timer.summary()
    assert (summary.steps, summary.first_steps, summary.batch.mean, summary.examples_per_second) == (0, 2, 0.0, 0.0)
    assert timer.interval() == {}
    # A traced step counts its tokens and not its time.
    timer = timer_of(9.0, 9.0, 1.0)
    timer.add(StepTimes(100.0, tokens=7), traced=True)
    assert (timer.tokens, timer.summary().steps, timer.summary().traced_steps, timer.summary().batch.mean) == (37, 1, 1, 1.0)


def test_an_interval_has_the_steps_since_the_last():
    timer = timer_of(9.0, 9.0, 1.0, 3.0)
    assert timer.interval()["batch_cost"] == 2.0
    timer.add(StepTimes(8.0, reader=2.0))
    values = timer.interval()
    assert (values["batch_cost"], values["batch_cost_p50"], values["reader_cost"], values["reader_cost_p99"]) == (8, 8, 2, 2)
    assert "communication_cost" not in values  # but of several replicas
    assert timer_of(9.0, 9.0, 8.0, replicas=2).interval()["communication_cost"] == 1.0
