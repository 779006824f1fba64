"""The table of comparisons; the bounds are those of issues 3 and 4, "Must show"."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

OWN = "bert_tf"
OTHER = "bert_tf, other Python"  # the same worker in another environment, such as one with TensorFlow 2.15
PEAK = "matmul peak"  # no contender, but it takes its turns among those of a training
PEERS = ("transformers", "keras_hub", "model_garden")

# Levers of our own worker. "Published layout" has every lever off: the stand-in for the published script.
GROUPED: Mapping[str, Any] = {"group_by_length": True}
PUBLISHED_LAYOUT: Mapping[str, Any] = {"published_layout": True}
HALF = "bfloat16"
ON_CPU: Mapping[str, Any] = {"visible_gpus": "none"}
TWO_DEVICES: Mapping[str, Any] = {**ON_CPU, "virtual_devices": 2, "strategy": "mirrored"}


@dataclasses.dataclass(frozen=True)
class Contender:
    """One way to do the work of a comparison."""

    name: str  # unique in the comparison
    library: str = OWN  # whose worker runs
    way: str = "dynamic"  # padding of batches: max, dynamic, grouped
    flags: Mapping[str, Any] = dataclasses.field(default_factory=dict)  # of our worker; or the number of evaluated checkpoints
    size: str | None = None  # None: that of the comparison, as for the next two
    max_seq_length: int | None = None
    batch_size: int | None = None
    precision: str = "float32"  # of activations and products


@dataclasses.dataclass(frozen=True)
class Requirement:
    """A bound on a result."""

    what: str  # for the report
    contender: str  # whose figure is bounded
    bound: float
    kind: str = "ratio"  # ratio, beside, share (of matmul peak), difference (of losses)
    against: str = ""  # the other contender of a ratio
    beside: str = ""  # comparison whose ratio this one is divided by
    at_least: bool = True  # a lower bound


@dataclasses.dataclass(frozen=True)
class Suite:
    """What is measured, and how."""

    worker: str  # suite of the workload
    unit: str  # of the figure
    procedure: str  # rounds, fresh, curves, commands or evaluations
    answer: str  # rate (examples), first_step, peak_rss or wall
    steps: int | None = None  # of one turn; None for the user's choice
    checked: bool = True  # token ids and initial losses must agree


_SUITES: Mapping[str, Suite] = {
    "features": Suite("features", "examples/s", "rounds", "rate", steps=1),
    "train": Suite("train", "examples/s", "rounds", "rate"),
    "predict": Suite("predict", "examples/s", "rounds", "rate", steps=1),
    "half": Suite("train", "examples/s", "rounds", "rate", checked=False),  # losses differ by the rounding of products
    "predict-half": Suite("predict", "examples/s", "rounds", "rate", steps=1, checked=False),
    "squad": Suite("train", "rows/s", "rounds", "rate"),
    "tagging": Suite("train", "rows/s", "rounds", "rate"),
    "squad-features": Suite("features", "questions/s", "rounds", "rate", steps=1),
    "encode": Suite("encode", "texts/s", "rounds", "rate", steps=1),
    "start": Suite("start", "s", "fresh", "first_step"),
    "memory": Suite("train", "MB", "fresh", "peak_rss", steps=12),
    "curves": Suite("train", "loss", "curves", "loss", steps=50),
    "replicas": Suite("train", "examples/s", "rounds", "rate"),
    "checkpoints": Suite("command", "s", "evaluations", "wall", checked=False),
    "command": Suite("command", "s", "commands", "wall", checked=False),
    "scaling": Suite("train", "examples/s", "rounds", "rate", checked=False),  # each has another size
}
_OF_VERSIONS = {f"versions-{name}": _SUITES[name] for name in ("features", "train", "half", "predict", "start")}
SUITES: Mapping[str, Suite] = {**_SUITES, **_OF_VERSIONS}
DEFAULT_SUITES = ("features", "train", "predict", "start", "memory")


@dataclasses.dataclass(frozen=True)
class Comparison:
    """Contenders on the same texts, weights, batch size and threads."""

    name: str
    title: str
    suite: str
    contenders: tuple[Contender, ...]  # ours first, the reference of ids and losses
    baselines: tuple[str, ...]  # the first one measured is the base of ratios
    size: str = "default"  # "default" (current checkpoint) or a row of `sizes.SIZES`
    max_seq_length: int = 64
    batch_size: int = 12
    texts: str = "train"  # row of `texts.TEXTS`
    requirements: tuple[Requirement, ...] = ()
    try_batch_sizes: tuple[int, ...] = ()  # the best for each contender, by brief trial
    workload: Mapping[str, Any] = dataclasses.field(default_factory=dict)  # further keys of the workload
    threads: int | None = None  # of each contender; None for the user's choice
    axis: str = ""  # what grows between contenders, for plots
    about: str = ""  # note for readers of the figures


_STRIDE = (
    "`transformers` takes a question's stride as what windows have in common, ours as what lies between their beginnings, as "
    "published; few contexts are longer than a window. It cuts a context into pieces for each of its questions, ours does so "
    "once, which explains most of the ratio."
)
_WHOLE = (
    "From the start of the process to its exit: reading, three epochs (sequence 64, batch 12, learning rate 5e-5, Adam with "
    "bias correction), evaluation, written results. `transformers` does it by `benchmarks/peers/transformers_classifier.py`: "
    "the same texts, weights, schedule and padding; it saves the trained model once, ours saves checkpoints with moments on "
    "the way, and makes the page. An account of our wall time that is more than 2 % off fails the suite."
)
_OURS = Contender("bert_tf")
_OURS_GROUPED = Contender("bert_tf grouped", way="grouped", flags=GROUPED)
_OURS_PUBLISHED = Contender("bert_tf published layout", way="max", flags=PUBLISHED_LAYOUT)
_OURS_ON_TWO = Contender("bert_tf, two devices", flags=TWO_DEVICES)
_OURS_ON_ONE = Contender("bert_tf", flags=ON_CPU)
_OURS_NOT_DEFERRED = Contender("bert_tf, no update put off", flags={**ON_CPU, "defer_embeddings": False})
_OF_TEN, _OF_THREE = (Contender(f"{count} checkpoints", flags={"checkpoints": count}) for count in (10, 3))
_OURS_NOT_NATIVE = Contender("bert_tf, no native kernels", flags={"native_kernels": False})
_OURS_IN_HALF = Contender("bert_tf bfloat16", precision=HALF)
_TRANSFORMERS = Contender("transformers dynamic", "transformers")
_TRANSFORMERS_IN_HALF = Contender("transformers bfloat16", "transformers", precision=HALF)
_BEST = Contender("transformers", "transformers")
_ELSEWHERE = Contender(OTHER, OTHER)
_IN_GIVEN_ORDER = Contender("transformers, as given", "transformers", way="given")
_BY_LENGTH = Contender("transformers, by length", "transformers", way="by length")


def _as_fast_as_the_classifier(what: str) -> tuple[Requirement, ...]:
    ratio = Requirement(f"{what} against transformers, dynamic padding", _OURS.name, 1.8, against=_TRANSFORMERS.name)
    beside = dataclasses.replace(
        ratio, what=f"{what}: this ratio, to that of sentences", bound=0.8, kind="beside", beside="train"
    )
    return ratio, beside


COMPARISONS = (
    Comparison(
        name="features",
        title="Features: text to cached ids, single sentences",
        suite="features",
        max_seq_length=128,
        texts="sentences",
        contenders=(_OURS, _BEST),
        baselines=("transformers", "bert_tf"),
        requirements=(Requirement("features against transformers' fast tokenizer", "bert_tf", 2.0, against="transformers"),),
    ),
    Comparison(
        name="train",
        title="Training, sequence 64, batch 12",
        suite="train",
        contenders=(
            _OURS,
            _OURS_GROUPED,
            _OURS_PUBLISHED,
            _OURS_NOT_NATIVE,
            Contender("transformers max", "transformers", way="max"),
            _TRANSFORMERS,
            Contender("transformers grouped", "transformers", way="grouped"),
            Contender("keras_hub", "keras_hub", way="max"),
            Contender("model_garden", "model_garden", way="max"),
        ),
        baselines=("transformers dynamic", "bert_tf published layout"),
        requirements=(
            Requirement("training against transformers, dynamic padding", "bert_tf", 1.8, against="transformers dynamic"),
            Requirement("both grouped by length", "bert_tf grouped", 1.5, against="transformers grouped"),
        ),
    ),
    Comparison(
        name="train-base",
        title="Training BERT-Base (random weights), sequence 64, batch 12",
        suite="train",
        size="base",
        contenders=(_OURS, _OURS_NOT_NATIVE, _TRANSFORMERS),
        baselines=("transformers dynamic", "bert_tf"),
        requirements=(
            Requirement("BERT-Base against transformers, dynamic padding", "bert_tf", 1.5, against="transformers dynamic"),
            Requirement("share of the matmul peak, BERT-Base", "bert_tf", 0.7, kind="share"),
        ),
    ),
    Comparison(
        name="train-128",
        title="Training, sequence 128, batch 32",
        suite="train",
        max_seq_length=128,
        batch_size=32,
        contenders=(_OURS, _OURS_PUBLISHED),
        baselines=("bert_tf published layout",),
        requirements=(
            Requirement("sequence 128, against published layout", "bert_tf", 2.5, against="bert_tf published layout"),
        ),
    ),
    Comparison(
        name="predict",
        title="Prediction of dev and test, each at its best batch size",
        suite="predict",
        texts="dev and test",
        contenders=(_OURS, _BEST),
        baselines=("transformers", "bert_tf"),
        try_batch_sizes=(8, 16, 32, 64, 128),
        requirements=(Requirement("prediction against transformers", "bert_tf", 1.6, against="transformers"),),
    ),
    Comparison(
        name="train-half",
        title="Training in bfloat16, sequence 64, batch 12",
        suite="half",
        contenders=(
            _OURS_IN_HALF,
            _OURS,
            Contender("bert_tf bfloat16, no native kernels", flags={"native_kernels": False}, precision=HALF),
            _TRANSFORMERS_IN_HALF,
            _TRANSFORMERS,
        ),
        baselines=("transformers bfloat16", "bert_tf"),
        requirements=(
            Requirement(
                "training in bfloat16 against transformers with bf16=True",
                _OURS_IN_HALF.name,
                1.8,
                against=_TRANSFORMERS_IN_HALF.name,
            ),
        ),
    ),
    Comparison(
        name="predict-half",
        title="Prediction in bfloat16 of dev and test, each at its best batch size",
        suite="predict-half",
        texts="dev and test",
        contenders=(_OURS_IN_HALF, _TRANSFORMERS_IN_HALF),
        baselines=("transformers bfloat16", "bert_tf bfloat16"),
        try_batch_sizes=(8, 16, 32, 64, 128),
        requirements=(
            Requirement(
                "prediction in bfloat16 against transformers with bf16",
                _OURS_IN_HALF.name,
                1.6,
                against=_TRANSFORMERS_IN_HALF.name,
            ),
        ),
    ),
    Comparison(
        name="squad",
        title="Training on questions, sequence 384, stride 128, batch 12",
        suite="squad",
        max_seq_length=384,
        texts="questions",
        contenders=(_OURS, _TRANSFORMERS),
        baselines=("transformers dynamic", "bert_tf"),
        requirements=_as_fast_as_the_classifier("training on questions"),
    ),
    Comparison(
        name="tagging",
        title="Training on tags, sequence 128, batch 32",
        suite="tagging",
        max_seq_length=128,
        batch_size=32,
        texts="words",
        contenders=(_OURS, _TRANSFORMERS),
        baselines=("transformers dynamic", "bert_tf"),
        requirements=_as_fast_as_the_classifier("training on tags"),
    ),
    *(
        Comparison(
            name=name,
            title=f"Features of questions: a JSON file to cached windows, sequence 384, stride 128{said}",
            suite="squad-features",
            max_seq_length=384,
            texts="questions",
            contenders=(_OURS, _BEST),
            baselines=("transformers", "bert_tf"),
            requirements=(Requirement(f"features of questions{said}", "bert_tf", 2.0, against="transformers"),),
            workload={"reads_file": True},
            about=_STRIDE,
            threads=threads,
        )
        for name, said, threads in (("squad-features", "", None), ("squad-features-1", ", one thread", 1))
    ),
    Comparison(
        name="encode",
        title="Vectors of texts (mean pooling), sequence 128",
        suite="encode",
        max_seq_length=128,
        batch_size=32,
        texts="to encode",
        contenders=(_OURS, _BY_LENGTH, _IN_GIVEN_ORDER),
        baselines=(_BY_LENGTH.name, "bert_tf"),
        requirements=(
            Requirement("vectors against transformers, texts by length", "bert_tf", 2.0, against=_BY_LENGTH.name),
            Requirement("vectors against transformers, texts as given", "bert_tf", 2.0, against=_IN_GIVEN_ORDER.name),
        ),
    ),
    Comparison(
        name="start",
        title="From process start to the end of the first training step",
        suite="start",
        contenders=(_OURS, _BEST),
        baselines=("transformers", "bert_tf"),
        requirements=(
            Requirement("time to the first step, to transformers'", "bert_tf", 0.8, against="transformers", at_least=False),
        ),
    ),
    Comparison(
        name="memory",
        title="Peak resident memory of training BERT-Base, 12 steps",
        suite="memory",
        size="base",
        contenders=(_OURS, _TRANSFORMERS),
        baselines=("transformers dynamic", "bert_tf"),
        requirements=(
            Requirement("peak memory, to transformers'", "bert_tf", 1.0, against="transformers dynamic", at_least=False),
        ),
    ),
    Comparison(
        name="curves",
        title="Losses of all levers on and off, same seed, no dropout",
        suite="curves",
        contenders=(_OURS, _OURS_PUBLISHED),
        baselines=("bert_tf published layout",),
        workload={"dropout": 0.0},
        requirements=(
            Requirement(
                "losses of all levers on and off: largest difference", "bert_tf", 1e-6, kind="difference", at_least=False
            ),
        ),
    ),
    *(
        Comparison(
            name=f"replicas-{batch_size}",
            title=f"One device and two logical ones on the same cores, sequence 128, global batch {batch_size}",
            suite="replicas",
            max_seq_length=128,
            batch_size=batch_size,
            contenders=(_OURS_ON_ONE, _OURS_NOT_DEFERRED, _OURS_ON_TWO),
            baselines=("bert_tf",),
            requirements=(
                Requirement(f"two devices against one, batch {batch_size}", _OURS_ON_TWO.name, 1 / 1.1, against="bert_tf"),
            ),
        )
        for batch_size in (12, 32)
    ),
    *(
        Comparison(
            name=name,
            title=f"Checkpoints of {data}, evaluated on dev by one command",
            suite="checkpoints",
            contenders=(_OF_TEN, _OF_THREE),
            baselines=(_OF_THREE.name,),
            workload=workload,
            requirements=(
                Requirement(
                    f"evaluating 10 checkpoints of {data}, time to that of 3",
                    _OF_TEN.name,
                    2.0,
                    against=_OF_THREE.name,
                    at_least=False,
                ),
            ),
        )
        for name, data, workload in (
            ("checkpoints", "MRPC", {}),
            ("checkpoints-sample", "the bundled sample", {"sample": True}),
        )
    ),
    *(
        Comparison(
            name=name,
            title=f"The whole command: three epochs of {data} and its evaluation",
            suite="command",
            contenders=(_OURS, _BEST),
            baselines=("transformers", "bert_tf"),
            workload=workload,
            about=_WHOLE,
            requirements=(
                Requirement(
                    f"whole command, {data}, time to transformers'", "bert_tf", 0.5, against="transformers", at_least=False
                ),
            ),
        )
        for name, data, workload in (("command", "MRPC", {}), ("command-sample", "the bundled sample", {"sample": True}))
    ),
    *(
        Comparison(
            name=f"versions-{name}",
            title=f"This environment and that of --other_python: {work}",
            suite=f"versions-{suite}",
            max_seq_length=128 if name == "features" else 64,
            texts=texts,
            contenders=(own, dataclasses.replace(_ELSEWHERE, precision=own.precision)),
            baselines=(OTHER,),
            requirements=(
                Requirement(f"{work}, to the other environment", own.name, bound, against=OTHER, at_least=name != "start"),
            ),
        )
        for name, suite, work, texts, own, bound in (
            ("features", "features", "text to cached ids", "sentences", _OURS, 0.97),
            ("train", "train", "training", "train", _OURS, 0.97),
            ("train-half", "half", "training in bfloat16", "train", _OURS_IN_HALF, 0.97),
            ("predict", "predict", "prediction", "dev and test", _OURS, 0.97),
            ("start", "start", "time to the first training step", "train", _OURS, 1 / 0.97),
        )
    ),
    Comparison(
        name="scaling-batch",
        title="Cost as the batch grows, sequence 64",
        suite="scaling",
        contenders=tuple(Contender(f"batch {n}", batch_size=n) for n in (4, 8, 16, 32, 64)),
        baselines=("batch 4",),
        axis="examples of a batch",
    ),
    Comparison(
        name="scaling-length",
        title="Cost as texts grow, batch 12, every example of full length",
        suite="scaling",
        texts="filled",
        contenders=tuple(Contender(f"length {n}", max_seq_length=n) for n in (32, 64, 128, 256, 512)),
        baselines=("length 32",),
        axis="tokens of an example",
    ),
    Comparison(
        name="scaling-size",
        title="Cost as the model grows (random weights), sequence 64, batch 12",
        suite="scaling",
        contenders=tuple(Contender(f"size {name}", size=name) for name in ("tiny", "mini", "medium", "base")),
        baselines=("size tiny",),
        axis="parameters of the encoder",
    ),
)


def select(suites: tuple[str, ...], sizes: tuple[str, ...]) -> tuple[Comparison, ...]:
    return tuple(row for row in COMPARISONS if row.suite in suites and row.size in sizes)
