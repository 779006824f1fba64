"""The table of comparisons; the bounds are those of issues 3 and 4, "Must show"."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

from bert_tf.head_spec import CHOICE, CONTRASTIVE, SIMILARITY
from bert_tf.tasks.settings import CUSTOM

PIECES = 128  # of a row of pre-training, at most

OWN = "bert_tf"
OTHER = "bert_tf, other Python"  # the same worker in another environment, such as one with TensorFlow 2.15
PEAK = "matmul peak"  # no contender, but it takes its turns among those whose operations are counted
PEERS = ("transformers", "keras_hub", "model_garden")

# Levers of our own worker. "Published layout" has every lever off: the stand-in for the published script.
GROUPED: Mapping[str, Any] = {"group_by_length": True}
PUBLISHED_LAYOUT: Mapping[str, Any] = {"published_layout": True}
HALF = "bfloat16"
AUTOMATIC = 0  # batch size
INT8 = "int8"  # has no peak: engines multiply in their own ways
ON_CPU: Mapping[str, Any] = {"visible_gpus": "none"}
TWO_DEVICES: Mapping[str, Any] = {**ON_CPU, "virtual_devices": 2, "strategy": "mirrored"}


@dataclasses.dataclass(frozen=True)
class Contender:
    """One way to do the work of a comparison."""

    name: str  # unique in the comparison
    library: str = OWN  # whose worker runs
    way: str = "dynamic"  # padding of batches: max, dynamic, grouped; compiled is dynamic, by torch.compile
    flags: Mapping[str, Any] = dataclasses.field(default_factory=dict)  # of our worker; or the number of evaluated checkpoints
    size: str | None = None  # None: that of the comparison, as for the next two
    max_seq_length: int | None = None
    batch_size: int | None = None  # AUTOMATIC: what our worker takes by itself
    precision: str = "float32"  # of activations and products


@dataclasses.dataclass(frozen=True)
class Requirement:
    """A bound on a result."""

    what: str  # for the report
    bound: float
    contender: str = ""  # whose figure is bounded; by default the first of the comparison
    # ratio, fastest (ratio to the fastest way of transformers), beside, share (of the matmul peak in the contender's
    # precision), difference (of losses)
    kind: str = "ratio"
    against: str = ""  # the other contender of a ratio, by default the first baseline
    beside: str = ""  # comparison whose ratio this one is divided by
    at_least: bool = True  # a lower bound


@dataclasses.dataclass(frozen=True)
class Suite:
    """What is measured, and how."""

    worker: str  # suite of the workload
    unit: str  # of the figure
    procedure: str  # rounds, fresh, curves, commands or evaluations
    steps: int | None = None  # of one turn; None for the user's choice
    checked: bool = True  # token ids and initial losses must agree


_SUITES: Mapping[str, Suite] = {
    "features": Suite("features", "examples/s", "rounds", steps=1),
    "train": Suite("train", "examples/s", "rounds"),
    "predict": Suite("predict", "examples/s", "rounds", steps=1),
    "half": Suite("train", "examples/s", "rounds", checked=False),  # losses differ by the rounding of products
    "predict-half": Suite("predict", "examples/s", "rounds", steps=1, checked=False),
    "squad": Suite("train", "rows/s", "rounds"),
    "tagging": Suite("train", "rows/s", "rounds"),
    "options": Suite("train", "questions/s", "rounds"),
    "pairs": Suite("train", "pairs/s", "rounds"),
    "pretraining": Suite("train", "rows/s", "rounds", checked=False),  # benchmarks.quality.pretraining compares all losses
    "squad-features": Suite("features", "questions/s", "rounds", steps=1),
    "encode": Suite("encode", "texts/s", "rounds", steps=1),
    "long": Suite("train", "examples/s", "rounds", steps=4),
    "long-predict": Suite("predict", "examples/s", "rounds", steps=1),
    "whole": Suite("train", "examples/s", "fresh", steps=1),  # two of these trainings at once do not fit into 24 GB
    "whole-memory": Suite("train", "MB", "fresh", steps=1),
    "start": Suite("start", "s", "fresh"),
    "memory": Suite("train", "MB", "fresh", steps=12),
    "curves": Suite("train", "loss", "curves", steps=50),
    "replicas": Suite("train", "examples/s", "rounds"),
    "checkpoints": Suite("command", "s", "evaluations", checked=False),
    "command": Suite("command", "s", "commands", checked=False),
    "scaling": Suite("train", "examples/s", "rounds", checked=False),  # each has another size
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
    baselines: tuple[str, ...] = ()  # the first one measured is the base of ratios; by default the last contender, then ours
    size: str = "default"  # "default" (current checkpoint) or a row of `figures.SIZES`
    max_seq_length: int = 64
    batch_size: int = 12
    texts: str = "train"  # row of `texts.TEXTS`
    requirements: tuple[Requirement, ...] = ()
    try_batch_sizes: tuple[int, ...] = ()  # the best for each contender without one of its own, by brief trial
    workload: Mapping[str, Any] = dataclasses.field(default_factory=dict)  # further keys of the workload
    threads: int | None = None  # of each contender; None for the user's choice
    axis: str = ""  # what grows between contenders, for plots
    about: str = ""  # note for readers of the figures

    def __post_init__(self) -> None:
        if not self.baselines:
            object.__setattr__(self, "baselines", (self.contenders[-1].name, self.contenders[0].name))
        object.__setattr__(self, "requirements", tuple(map(self._completed, self.requirements)))

    def batch_size_of(self, contender: Contender, tried: int | None = None) -> int:
        """Returns the best one tried, else the contender's own, else that of all."""
        own = self.batch_size if contender.batch_size is None else contender.batch_size
        return own if tried is None else tried

    def _completed(self, row: Requirement) -> Requirement:
        against = row.against or (self.baselines[0] if row.kind in ("ratio", "beside") else "")
        return dataclasses.replace(row, contender=row.contender or self.contenders[0].name, against=against)


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
_OURS_BY_DEFAULT = dataclasses.replace(_OURS, batch_size=AUTOMATIC)
_OURS_IN_HALF_BY_DEFAULT = dataclasses.replace(_OURS_IN_HALF, batch_size=AUTOMATIC)
_OURS_IN_HALF_NOT_NATIVE = dataclasses.replace(_OURS_NOT_NATIVE, name="bert_tf bfloat16, no native kernels", precision=HALF)
_TRANSFORMERS = Contender("transformers dynamic", "transformers")
_TRANSFORMERS_GROUPED = Contender("transformers grouped", "transformers", way="grouped")
_TRANSFORMERS_COMPILED = Contender("transformers compiled", "transformers", way="compiled")
_TRANSFORMERS_IN_HALF = Contender("transformers bfloat16", "transformers", precision=HALF)
_BEST = Contender("transformers", "transformers")
_ELSEWHERE = Contender(OTHER, OTHER)
_UNSORTED = Contender("transformers, unsorted", "transformers", way="unsorted")
_SORTED = Contender("transformers, sorted by length", "transformers", way="sorted")
_SORTED_IN_HALF = dataclasses.replace(_SORTED, name="transformers bfloat16, sorted by length", precision=HALF)
_OURS_IN_INT8 = Contender("bert_tf int8, ONNX Runtime", flags={"engine": "onnxruntime"}, precision=INT8)


_MRPC_AND_SAMPLE: tuple[tuple[str, str, Mapping[str, Any]], ...] = (
    ("", "MRPC", {}),
    ("-sample", "the bundled sample", {"sample": True}),
)


# Sizes with random weights, their names, and the least ratios to transformers: of training and of prediction.
_ARCHITECTURES = (
    ("electra-base", "ELECTRA-Base", 1.5, 1.6),
    ("distilbert-base", "DistilBERT", 1.5, 1.6),
    ("roberta-base", "RoBERTa-Base", 1.5, 1.6),
    ("deberta-v3-small", "DeBERTa-v3-small", 2.0, 2.0),
)
_MODERNBERT = "ModernBERT-base (random weights)"


def _share(what: str, bound: float = 0.7) -> Requirement:
    return Requirement(f"{what}: share of the matmul peak", bound, kind="share")


def _like_the_classifier(
    suite: str, goal: str, texts: str, *, length: int = 64, batch_size: int = 12, said: str = "", kind: str = "", name: str = ""
) -> Comparison:
    """Training of another task, as fast beside transformers as that of the classifier; `kind` is that of own data."""
    what = "training on options" if kind == CHOICE else f"training {goal}"
    ratio = Requirement(f"{what} against transformers, dynamic padding", 1.8)
    beside = Requirement(f"{what}: this ratio, to that of sentences", 0.8, kind="beside", beside="train")
    return Comparison(
        name or suite,
        f"Training {goal}, sequence {length}{said}, batch {batch_size}",
        suite,
        (_OURS, _TRANSFORMERS),
        requirements=(ratio, beside, _share(what)),
        max_seq_length=length,
        batch_size=batch_size,
        texts=texts,
        workload={"task": CUSTOM, "kind": kind} if kind else {},
    )


COMPARISONS = (
    Comparison(
        "features",
        "Features: text to cached ids, single sentences",
        "features",
        (_OURS, _BEST),
        requirements=(Requirement("features against transformers' fast tokenizer", 2.0),),
        max_seq_length=128,
        texts="sentences",
    ),
    Comparison(
        "train",
        "Training, sequence 64, batch 12",
        "train",
        (
            *(_OURS, _OURS_GROUPED, _OURS_PUBLISHED, _OURS_NOT_NATIVE),
            Contender("transformers max", "transformers", way="max"),
            *(_TRANSFORMERS, _TRANSFORMERS_GROUPED, _TRANSFORMERS_COMPILED),
            Contender("keras_hub", "keras_hub", way="max"),
            Contender("model_garden", "model_garden", way="max"),
        ),
        baselines=(_TRANSFORMERS.name, _OURS_PUBLISHED.name),
        requirements=(
            Requirement("training against transformers, dynamic padding", 1.8),
            Requirement("training against the fastest way of transformers", 1.8, kind="fastest"),
            Requirement("both grouped by length", 1.5, _OURS_GROUPED.name, against=_TRANSFORMERS_GROUPED.name),
        ),
    ),
    Comparison(
        "train-base",
        "Training BERT-Base (random weights), sequence 64, batch 12",
        "train",
        (_OURS, _OURS_NOT_NATIVE, _TRANSFORMERS),
        size="base",
        requirements=(
            Requirement("BERT-Base against transformers, dynamic padding", 1.5),
            Requirement("share of the matmul peak, BERT-Base", 0.7, kind="share"),
        ),
    ),
    *(
        Comparison(
            f"train-{size.removesuffix('-base')}",
            f"Training {name} (random weights), sequence 64, batch 12",
            "train",
            (_OURS, _TRANSFORMERS),
            size=size,
            requirements=(Requirement(f"{name} against transformers, dynamic padding", bound),),
        )
        for size, name, bound, _ in _ARCHITECTURES
    ),
    Comparison(
        "train-128",
        "Training, sequence 128, batch 32",
        "train",
        (_OURS, _OURS_PUBLISHED),
        baselines=(_OURS_PUBLISHED.name,),
        requirements=(Requirement("sequence 128, against published layout", 2.5),),
        max_seq_length=128,
        batch_size=32,
    ),
    Comparison(
        "predict",
        "Prediction of dev and test; batch sizes: ours by default, theirs the best one",
        "predict",
        (_OURS_BY_DEFAULT, _BEST),
        requirements=(Requirement("prediction against transformers", 1.6),),
        texts="dev and test",
        try_batch_sizes=(8, 16, 32, 64, 128),
    ),
    *(
        Comparison(
            f"predict-{size.removesuffix('-base')}",
            f"Prediction of dev by {name} (random weights), batch 32",
            "predict",
            (_OURS, _BEST),
            size=size,
            batch_size=32,
            requirements=(Requirement(f"prediction by {name} against transformers", bound),),
            texts="dev",
        )
        for size, name, _, bound in _ARCHITECTURES
    ),
    *(
        Comparison(
            name,
            f"{work} {_MODERNBERT}, 12 texts of 64 to 2,048 tokens, batch {batch_size}",
            name,
            (_OURS, _TRANSFORMERS),
            size="modernbert-base",
            max_seq_length=2048,
            batch_size=batch_size,
            texts="spread",
            requirements=(Requirement(f"{work.lower()} ModernBERT-base on texts of 64 to 2,048 tokens", bound),),
        )
        # Both trainings with batches of 6 do not fit into 24 GB together.
        for name, work, batch_size, bound in (("long", "Training", 3, 3.0), ("long-predict", "Predicting by", 6, 2.5))
    ),
    *(
        Comparison(
            name,
            f"{what} of a training step of {_MODERNBERT}, one text of 8,192 tokens",
            name,
            (_OURS, _TRANSFORMERS),
            size="modernbert-base",
            max_seq_length=8192,
            batch_size=1,
            texts="whole",
        )
        for name, what in (("whole", "Time"), ("whole-memory", "Peak resident memory"))
    ),
    Comparison(
        "train-half",
        "Training in bfloat16, sequence 64, batch 12",
        "half",
        (_OURS_IN_HALF, _OURS, _OURS_IN_HALF_NOT_NATIVE, _TRANSFORMERS_IN_HALF, _TRANSFORMERS),
        baselines=(_TRANSFORMERS_IN_HALF.name, _OURS.name),
        requirements=(
            Requirement("training in bfloat16 against transformers with bf16=True", 1.8),
            _share("training in bfloat16", 0.6),
        ),
    ),
    Comparison(
        "predict-half",
        "Prediction in bfloat16 of dev and test; batch sizes: ours by default, theirs the best one",
        "predict-half",
        (_OURS_IN_HALF_BY_DEFAULT, _TRANSFORMERS_IN_HALF),
        requirements=(Requirement("prediction in bfloat16 against transformers with bf16", 1.8),),
        texts="dev and test",
        try_batch_sizes=(8, 16, 32, 64, 128),
    ),
    _like_the_classifier("squad", "on questions", "questions", length=384, said=", stride 128"),
    _like_the_classifier("tagging", "on tags", "words", length=128, batch_size=32),
    _like_the_classifier("options", "on questions with options", "options", length=128, batch_size=8, kind=CHOICE),
    *(
        _like_the_classifier("pairs", f"vectors {goal}", "scored pairs", batch_size=32, kind=kind, name=kind)
        for kind, goal in ((SIMILARITY, "on similarity scores"), (CONTRASTIVE, "contrastively"))
    ),
    Comparison(
        "pretraining",
        "Pre-training (random weights), sequence 128, batch 32",
        "pretraining",
        (_OURS, _TRANSFORMERS),
        requirements=(Requirement("pre-training against transformers, dynamic padding", 2.5), _share("pre-training")),
        max_seq_length=PIECES,
        batch_size=32,
        texts="pieces",
    ),
    *(
        Comparison(
            name,
            f"Features of questions: a JSON file to cached windows, sequence 384, stride 128{said}",
            "squad-features",
            (_OURS, _BEST),
            requirements=(Requirement(f"features of questions{said}", 2.0),),
            max_seq_length=384,
            texts="questions",
            workload={"reads_file": True},
            threads=threads,
            about=_STRIDE,
        )
        for name, said, threads in (("squad-features", "", None), ("squad-features-1", ", one thread", 1))
    ),
    Comparison(
        "encode",
        "Vectors of texts (mean pooling), sequence 128",
        "encode",
        (_OURS, _SORTED, _UNSORTED, _OURS_IN_HALF, _SORTED_IN_HALF, _OURS_IN_INT8),
        baselines=(_SORTED.name, _OURS.name),
        requirements=(
            Requirement("vectors against transformers, texts sorted by length", 2.0),
            _share("vectors"),
            Requirement("vectors against transformers, unsorted texts", 2.0, against=_UNSORTED.name),
            Requirement("vectors in bfloat16 against transformers", 2.0, _OURS_IN_HALF.name, against=_SORTED_IN_HALF.name),
        ),
        max_seq_length=128,
        batch_size=32,
        texts="to encode",
    ),
    Comparison(
        "start",
        "From process start to the end of the first training step",
        "start",
        (_OURS, _BEST),
        requirements=(Requirement("time to the first step, to transformers'", 0.8, at_least=False),),
    ),
    Comparison(
        "memory",
        "Peak resident memory of training BERT-Base, 12 steps",
        "memory",
        (_OURS, _TRANSFORMERS),
        requirements=(Requirement("peak memory, to transformers'", 1.0, at_least=False),),
        size="base",
    ),
    Comparison(
        "curves",
        "Losses of all levers on and off, same seed, no dropout",
        "curves",
        (_OURS, _OURS_PUBLISHED),
        baselines=(_OURS_PUBLISHED.name,),
        requirements=(
            Requirement("losses of all levers on and off: largest difference", 1e-6, kind="difference", at_least=False),
        ),
        workload={"dropout": 0.0},
    ),
    *(
        Comparison(
            f"replicas-{batch_size}",
            f"One device and two logical ones on the same cores, sequence 128, global batch {batch_size}",
            "replicas",
            (_OURS_ON_ONE, _OURS_NOT_DEFERRED, _OURS_ON_TWO),
            baselines=(_OURS_ON_ONE.name,),
            requirements=(Requirement(f"two devices against one, batch {batch_size}", 1 / 1.1, _OURS_ON_TWO.name),),
            max_seq_length=128,
            batch_size=batch_size,
        )
        for batch_size in (12, 32)
    ),
    *(
        Comparison(
            f"checkpoints{name}",
            f"Checkpoints of {data}, evaluated on dev by one command",
            "checkpoints",
            (_OF_TEN, _OF_THREE),
            baselines=(_OF_THREE.name,),
            requirements=(Requirement(f"evaluating 10 checkpoints of {data}, time to that of 3", 2.0, at_least=False),),
            workload=workload,
        )
        for name, data, workload in _MRPC_AND_SAMPLE
    ),
    *(
        Comparison(
            f"command{name}",
            f"The whole command: three epochs of {data} and its evaluation",
            "command",
            (_OURS, _BEST),
            requirements=(Requirement(f"whole command, {data}, time to transformers'", 0.5, at_least=False),),
            workload=workload,
            about=_WHOLE,
        )
        for name, data, workload in _MRPC_AND_SAMPLE
    ),
    *(
        Comparison(
            f"versions-{name}",
            f"This environment and that of --other_python: {work}",
            f"versions-{suite}",
            (own, dataclasses.replace(_ELSEWHERE, precision=own.precision)),
            baselines=(OTHER,),
            requirements=(Requirement(f"{work}, to the other environment", bound, at_least=name != "start"),),
            max_seq_length=128 if name == "features" else 64,
            texts=texts,
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
        "scaling-batch",
        "Cost as the batch grows, sequence 64",
        "scaling",
        tuple(Contender(f"batch {n}", batch_size=n) for n in (4, 8, 16, 32, 64)),
        baselines=("batch 4",),
        axis="examples of a batch",
    ),
    Comparison(
        "scaling-length",
        "Cost as texts grow, batch 12, every example of full length",
        "scaling",
        tuple(Contender(f"length {n}", max_seq_length=n) for n in (32, 64, 128, 256, 512)),
        baselines=("length 32",),
        texts="filled",
        axis="tokens of an example",
    ),
    Comparison(
        "scaling-size",
        "Cost as the model grows (random weights), sequence 64, batch 12",
        "scaling",
        tuple(Contender(f"size {name}", size=name) for name in ("tiny", "mini", "medium", "base")),
        baselines=("size tiny",),
        axis="parameters of the encoder",
    ),
)
