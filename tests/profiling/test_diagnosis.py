import json

import pytest

from bert_tf.profiling import timing_file
from bert_tf.profiling.diagnosis import Setting, diagnose
from bert_tf.profiling.step_timer import StepTimer, StepTimes
from bert_tf.profiling.wall_clock import Account

CPU, GPU = Setting(), Setting(gpu=True)


def run_of(steps=40, **times):
    """Steps of 100 ms."""
    timer = StepTimer(batch_size=8, replicas=1, warm_up_steps=0)
    for _ in range(steps):
        timer.add(StepTimes(0.1, tokens=50, **times))
    return timer.summary()


@pytest.mark.parametrize(
    ("times", "setting", "kind"),
    [
        ({"reader": 0.03}, CPU, "input-bound"),
        ({"reader": 0.01}, CPU, "compute-bound"),
        ({"communication": 0.04}, Setting(replicas=2), "communication-bound"),
        ({"communication": 0.04, "reader": 0.05}, Setting(replicas=2), "input-bound"),
        ({"lead": 0.001}, GPU, "host-bound"),
        ({"lead": 0.04}, GPU, "compute-bound"),
        ({"lead": 0.001, "reader": 0.05}, GPU, "input-bound"),
        ({}, Setting(machines=2, replicas=2), "compute-bound"),
    ],
)
def test_the_verdict_is_what_holds_the_run_up_most(times, setting, kind):
    diagnosis = diagnose(run_of(**times), setting)
    assert diagnosis.kind == kind
    assert diagnosis.text.startswith(f"The run was {kind}: ")


def test_a_few_steps_are_too_short_to_tell():
    assert diagnose(run_of(19), CPU).kind == "too short to tell"
    assert diagnose(run_of(20), CPU).kind == "compute-bound"


def test_the_evidence_is_given_with_the_ratio_of_the_costs():
    diagnosis = diagnose(run_of(reader=0.05), CPU)
    assert diagnosis.shares == {"reader": 0.5, "communication": 0.0}
    assert diagnosis.text == (
        "The run was input-bound: 50% of a step was waiting for the next batch. Mean of 40 steps: batch_cost 100.00 ms"
        " (p50 100.00 ms, p90 100.00 ms, p99 100.00 ms), reader_cost 50.00 ms (reader_cost / batch_cost = 0.5000); 80.0"
        " examples/s, 500 tokens/s; 0 first steps, 0.00 ms in all, are not in it. Try --intra_op_threads: one less than there"
        " are cores leaves one to the reader."
    )


@pytest.mark.parametrize(
    ("kernel", "faults", "keep_memory", "said"),
    [
        (0.06, 52_000, False, "took 30% of the CPU time of the steps (52000 page faults a step); --keep_memory keeps"),
        (0.06, 52_000, True, "look for MALLOC_ and TF_CPU_ variables"),
        (0.02, 999, True, "took 10% of the CPU time of the steps (999 page faults a step); fewer threads"),
        (0.0199, 52_000, False, None),
    ],
)
def test_time_in_the_kernel_is_mentioned_where_it_is_much_with_its_cause(kernel, faults, keep_memory, said):
    steps = run_of(cpu=0.2, kernel=kernel, page_faults=faults)
    text = diagnose(steps, Setting(keep_memory=keep_memory)).text
    assert ("The operating system" in text) is (said is not None)
    assert (said or "") in text


def test_time_between_steps_is_mentioned_where_it_is_much():
    # 216 s of training, 102 s of them in two evaluations, the last of which follows the last step.
    parts = {"graph": 9.0, "first_steps": 4.0, "steps": 105.8, "saves": 4.0, "evaluations": 102.0, "log": 0.2}
    text = diagnose(run_of(), CPU, account=Account(225.0, parts, {"steps", "evaluations"})).text
    between = "saving checkpoints 4.00 s, evaluating while training 102.00 s"
    assert f"49% of training passed between steps ({between}); evaluations are rarer with a larger --eval_every" in text
    assert "rarer" not in diagnose(run_of(), CPU, account=Account(225.0, parts)).text  # one of each
    few = Account(120.0, {**parts, "evaluations": 1.0})
    assert "between steps" not in diagnose(run_of(), CPU, account=few).text


READER, LEAD, COMMUNICATION = ({name: 0.05} for name in ("reader", "lead", "communication"))
TWO, FOUR = ({"gpu": True, "replicas": count} for count in (2, 4))
HALF = {"gpu": True, "precision": "float16"}
BFLOAT16 = {"half_precision": "bfloat16"}


@pytest.mark.parametrize(
    ("times", "setting", "flag"),
    [
        # A reader is offered a core where none is left to it yet.
        (READER, {}, "--intra_op_threads"),
        (READER, {"intra_op_threads": 1}, "--train_batch_size"),
        (READER, {"gpu": True}, "--train_batch_size"),
        ({}, {}, "--group_by_length"),
        ({}, {"group_by_length": True}, None),
        # A CPU that is busy is offered its own instructions first.
        ({}, BFLOAT16, "--precision=bfloat16"),
        ({}, {**BFLOAT16, "precision": "bfloat16"}, "--group_by_length"),
        ({}, {"gpu": True, "accumulation_steps": 4}, "--gradient_accumulation_steps"),  # the host is not ahead of it
        # A GPU that is busy is offered half precision first.
        (LEAD, {"gpu": True, **BFLOAT16}, "--precision=bfloat16"),
        (LEAD, {"gpu": True, "half_precision": "float16"}, "--precision=float16"),  # a GPU from before bfloat16
        (LEAD, {"gpu": True}, "--xla"),
        (LEAD, HALF, "--xla"),
        (LEAD, {**HALF, "xla": True, "group_by_length": True}, None),
        # Replicas that wait for each other are offered another way to add up.
        (COMMUNICATION, TWO, "--train_batch_size"),
        (COMMUNICATION, {"gpu": True, "replicas": 3}, "--train_batch_size"),
        (COMMUNICATION, FOUR, "--cross_device_ops=hierarchical"),  # which adds up among neighbours first
        (COMMUNICATION, {**FOUR, "cross_device_ops": "hierarchical"}, "--train_batch_size"),
        (COMMUNICATION, {**TWO, "strategy": "central_storage"}, "--train_batch_size"),  # which adds up on the host
        (COMMUNICATION, {**TWO, "machines": 2}, "--all_reduce_alg=nccl"),
        (COMMUNICATION, {"replicas": 2}, "--train_batch_size"),
    ],
)
def test_the_flag_to_try_is_one_that_is_not_in_use(times, setting, flag):
    diagnosis = diagnose(run_of(**times), Setting(**setting))
    assert diagnosis.flag == flag
    assert (flag or "No flag") in diagnosis.text


def test_unused_bfloat16_of_a_cpu_comes_with_its_time():
    text = diagnose(run_of(), Setting(half_precision="bfloat16")).text
    assert "these steps would take 2.40 s to 3.00 s instead of 4.00 s" in text


def test_the_file_holds_summary_diagnosis_and_the_last_account(tmp_path):
    summary = run_of(reader=0.05)
    timing_file.write(tmp_path, summary, diagnose(summary, CPU))
    for seconds in (5.0, 7.0):
        timing_file.add_account(tmp_path, Account(seconds, {"steps": seconds}))
    written = json.loads((tmp_path / "timing.json").read_text())
    assert (written["steps"], written["reader"]["p90"], written["tokens_per_second"]) == (40, 0.05, pytest.approx(500))
    assert (written["diagnosis"]["kind"], written["wall"]) == ("input-bound", {"seconds": 7.0, "parts": {"steps": 7.0}})


@pytest.mark.parametrize("content", ["", "[1]", "3", "null", '"text"'])
def test_an_account_replaces_a_damaged_file(tmp_path, content):
    (tmp_path / "timing.json").write_text(content)
    timing_file.add_account(tmp_path, Account(5.0, {"steps": 5.0}))
    assert json.loads((tmp_path / "timing.json").read_text()) == {"wall": {"seconds": 5.0, "parts": {"steps": 5.0}}}
