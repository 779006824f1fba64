"""Names the bottleneck of a run from its step times: one paragraph with the evidence, and the flag to try next."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping

from bert_tf.profiling.step_timer import Summary
from bert_tf.profiling.wall_clock import BETWEEN_STEPS, EVALUATIONS, FIRST_STEPS, PARTS, SAVES, STEPS, Account

INPUT_BOUND, HOST_BOUND, COMPUTE_BOUND = "input-bound", "host-bound", "compute-bound"
COMMUNICATION_BOUND, TOO_SHORT = "communication-bound", "too short to tell"

_BATCH_SIZE, _PARTS_FLAG = "--train_batch_size", "--gradient_accumulation_steps"
_LEAST_STEPS = 20
_LARGE = 0.2  # share of a step from which on waiting is what holds a run up
_AHEAD = 0.05  # share of a step that the host is ahead of a GPU that it keeps busy
_KERNEL = 0.1  # share of the CPU time that is worth a word
_FAULTS = 1000  # page faults of a step, 4 MB of new memory, from which on memory is what the kernel is busy with
_OUTSIDE, _NAMED = 0.1, 0.01  # shares of the time between steps, and of a part of it, that are worth a word
_BFLOAT16_TIME = (0.6, 0.75)  # of a float32 step; measured on two AMD CPUs (docs/speed.md)
# By a part between steps, what makes it rarer.
_RARER = {
    SAVES: "checkpoints are rarer with a larger --save_checkpoints_steps",
    EVALUATIONS: "evaluations are rarer with a larger --eval_every_n_steps",
}


@dataclasses.dataclass(frozen=True)
class Setting:
    """Hardware and settings of a run, as far as a flag could change them."""

    gpu: bool = False
    replicas: int = 1
    machines: int = 1
    strategy: str = "mirrored"
    precision: str = "float32"
    half_precision: str | None = None  # the format of 16 bits that this machine has units for
    xla: bool = False
    group_by_length: bool = False
    accumulation_steps: int = 1
    cross_device_ops: str | None = None
    all_reduce_alg: str | None = None
    intra_op_threads: int | None = None
    keep_memory: bool = True


UNKNOWN_SETTING = Setting()  # one CPU, no flags


@dataclasses.dataclass(frozen=True)
class Diagnosis:
    """The bottleneck of a run."""

    kind: str  # one of the five names above
    shares: Mapping[str, float]  # of batch_cost: reader, communication
    flag: str | None  # to try next; None if no flag helps
    text: str  # one paragraph for people


def _hints(s: Setting, seconds: float) -> Mapping[str, tuple[tuple[bool, str, str], ...]]:
    """Flags to try, by bottleneck: whether one applies, its name, and why it may help; steps took `seconds` in all."""
    half = s.half_precision if s.precision in ("float32", "tf32") and (s.gpu or not s.xla) else None
    core_left = not s.gpu and s.intra_op_threads is None
    by_nccl = s.machines > 1 and s.gpu and not s.all_reduce_alg
    is_hierarchical = s.cross_device_ops == "hierarchical" or s.strategy == "central_storage"
    in_groups = s.gpu and s.replicas > 2 and not s.replicas % 2 and s.machines == 1 and not is_hierarchical
    rarely = "gradients are added up once a step, so a larger batch does it less often"
    return {
        INPUT_BOUND: (
            (core_left, "--intra_op_threads", "one less than there are cores leaves one to the reader"),
            (True, _BATCH_SIZE, "a larger batch is read with less work for each example"),
        ),
        HOST_BOUND: (
            (s.accumulation_steps > 1, _PARTS_FLAG, "fewer parts are fewer and larger operations"),
            (not s.xla, "--xla", "joins many small operations into few"),
            (True, _BATCH_SIZE, "a larger batch gives each operation more to compute"),
        ),
        COMMUNICATION_BOUND: (
            (by_nccl, "--all_reduce_alg=nccl", "adds up between GPUs directly"),
            (in_groups, "--cross_device_ops=hierarchical", "adds up in groups of neighbours, which suits GPUs without NVLink"),
            (True, _BATCH_SIZE, f"{rarely} ({_PARTS_FLAG} keeps it within the memory)"),
        ),
        COMPUTE_BOUND: (
            (half is not None, f"--precision={half}", "uses Tensor Cores" if s.gpu else _in_half(seconds)),
            (s.gpu and not s.xla, "--xla", "joins operations"),
            (not s.group_by_length, "--group_by_length", "leaves less to compute where lengths differ"),
        ),
    }


def _in_half(seconds: float) -> str:
    least, most = (_time(share * seconds) for share in _BFLOAT16_TIME)
    return (
        f"this CPU has instructions for it; as measured on AMD CPUs, these steps would take {least} to {most} instead of"
        f" {_time(seconds)}, and scores of five seeds differed by less than their spread (docs/speed.md)"
    )


def diagnose(summary: Summary, setting: Setting, *, account: Account | None = None) -> Diagnosis:
    if summary.steps < _LEAST_STEPS:
        first = f" {summary.first_steps} first steps took {_time(summary.first_seconds)}." if summary.first_steps else ""
        text = f"The run was {TOO_SHORT}: {summary.steps} after the first steps, {_LEAST_STEPS} are needed.{first}"
        return Diagnosis(TOO_SHORT, {}, None, text)
    shares = {
        "reader": summary.reader.mean / summary.batch.mean,
        "communication": summary.communication.mean / summary.batch.mean,
    }
    kind, steps = _kind(summary, setting, shares), summary.steps * summary.batch.mean
    flag, why = next(((flag, why) for applies, flag, why in _hints(setting, steps)[kind] if applies), (None, ""))
    next_try = f"Try {flag}: {why}." if flag else "No flag is known to make it faster."
    sentences = [f"The run was {kind}: {_reason(kind, summary, setting, shares)}.", _evidence(summary, setting, shares)]
    sentences += _in_the_kernel(summary, setting)
    sentences += _outside(account) if account else []
    return Diagnosis(kind, shares, flag, " ".join([*sentences, next_try]))


def _in_the_kernel(summary: Summary, setting: Setting) -> list[str]:
    if summary.kernel_share < _KERNEL:
        return []
    if summary.page_faults < _FAULTS:
        remedy = "fewer threads (--intra_op_threads) wait less for each other"
    elif not setting.keep_memory:
        remedy = "--keep_memory keeps freed memory for the next step"
    else:
        remedy = "freed memory is not kept: look for MALLOC_ and TF_CPU_ variables in the environment, and for swapping"
    share, faults = f"{summary.kernel_share:.0%}", f"{summary.page_faults:.0f}"
    return [f"The operating system took {share} of the CPU time of the steps ({faults} page faults a step); {remedy}."]


def _outside(account: Account) -> list[str]:
    outside = {name: account.parts.get(name, 0.0) for name in BETWEEN_STEPS}
    training = sum(outside.values()) + sum(account.parts.get(name, 0.0) for name in (FIRST_STEPS, STEPS))
    if sum(outside.values()) < _OUTSIDE * training or not training:
        return []
    named = [f"{PARTS[name]} {_time(seconds)}" for name, seconds in outside.items() if seconds >= _NAMED * training]
    advice = "".join(f"; {remedy}" for name, remedy in _RARER.items() if name in account.repeated)
    return [f"{sum(outside.values()) / training:.0%} of training passed between steps ({', '.join(named)}){advice}."]


def _kind(summary: Summary, setting: Setting, shares: Mapping[str, float]) -> str:
    """Returns the largest cause of waiting if it is large enough, else the device."""
    waits = {INPUT_BOUND: shares["reader"], COMMUNICATION_BOUND: shares["communication"]}
    kind = max(waits, key=waits.__getitem__)
    if waits[kind] >= _LARGE:
        return kind
    return HOST_BOUND if setting.gpu and summary.lead.mean < _AHEAD * summary.batch.mean else COMPUTE_BOUND


def _reason(kind: str, summary: Summary, setting: Setting, shares: Mapping[str, float]) -> str:
    if kind == INPUT_BOUND:
        return f"{shares['reader']:.0%} of a step was waiting for the next batch"
    if kind == COMMUNICATION_BOUND:
        others = "the other machines" if setting.machines > 1 else "the sum of the replicas' gradients"
        return f"{shares['communication']:.0%} of a step was waiting for {others}"
    ahead = f"the host was {_time(summary.lead.mean)} ahead of the GPU ({summary.lead.mean / summary.batch.mean:.0%} of a step)"
    if setting.gpu:
        return ahead
    waited = shares["reader"] + shares["communication"]
    return f"{waited:.0%} of a step was waiting (--profile_steps shows what computed in the rest)"


def _evidence(summary: Summary, setting: Setting, shares: Mapping[str, float]) -> str:
    parts = [
        f"Mean of {summary.steps} steps: batch_cost {_time(summary.batch.mean)} (p50 {_time(summary.batch.p50)},"
        f" p90 {_time(summary.batch.p90)}, p99 {_time(summary.batch.p99)})",
        f"reader_cost {_time(summary.reader.mean)} (reader_cost / batch_cost = {shares['reader']:.4f})",
    ]
    if setting.replicas > 1:
        parts.append(f"communication {_time(summary.communication.mean)}")
    rates = f"{summary.examples_per_second:.1f} examples/s, {summary.tokens_per_second:.0f} tokens/s"
    first = f"{summary.first_steps} first steps, {_time(summary.first_seconds)} in all, are not in it"
    return f"{', '.join(parts)}; {rates}; {first}."


def _time(seconds: float) -> str:
    return f"{seconds:.2f} s" if seconds >= 1.0 else f"{seconds * 1e3:.2f} ms"
