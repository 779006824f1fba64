"""Scores of words: integrated gradients (Sundararajan et al., 2017) and occlusion, batched over points.

Shapes: C points, R rows of an example, T tokens of the longest, W words.
"""

from __future__ import annotations

import dataclasses
import functools
import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, cast

import numpy as np
import numpy.typing as npt
import tensorflow as tf

from bert_tf.batch import graph
from bert_tf.batch.session import Predictor, Session
from bert_tf.batch.tensorflow_engine import TensorFlowEngine
from bert_tf.batch.trained import Trained
from bert_tf.errors import FlagError, unknown_name
from bert_tf.estimator.failures import readable_errors
from bert_tf.extensions.explain.explanation import (
    INTEGRATED_GRADIENTS,
    METHODS,
    MOST_STEPS,
    OCCLUSION,
    STEPS,
    Explanation,
    refuse_idle,
)
from bert_tf.extensions.explain.targets import EXPLAINED, Case
from bert_tf.extensions.explain.words import SPECIAL, TracingTokenizer, Words
from bert_tf.features.batching import TO_LONGEST
from bert_tf.features.columns import Array
from bert_tf.fields import INPUTS
from bert_tf.modeling.heads import registry as heads
from bert_tf.settings import Setting, checked
from bert_tf.tokenization.vocabulary import Vocabulary

tf1 = tf.compat.v1

Floats = npt.NDArray[np.float64]

_TOLERANCE = 0.01  # completeness error at which steps are no longer doubled
_LEAST_CHANGE = 1e-6  # of an output: a smaller change is rounding
_TOKENS = 4096  # of a batch

_IDS = INPUTS[0].name


class _Graph(NamedTuple):
    inputs: Mapping[str, tf.Tensor]  # [C R, T]
    baseline: tf.Tensor  # [C R, T] ids at which the path begins
    alphas: tf.Tensor  # [C R] place on the path: 0 at the baseline, 1 at the input
    weights: tf.Tensor  # [C R, ...] see `Target`
    points: tf.Tensor  # [C R] point of each row
    values: tf.Tensor  # [C] explained output
    slopes: tf.Tensor  # [C R, T] its derivative along the path, by the words of each token


class _Gradients:
    """Computes a score of outputs at any point between a baseline and an input, with gradients, in the graph of an engine."""

    def __init__(self, engine: TensorFlowEngine, trained: Trained, score: Callable[..., tf.Tensor]) -> None:
        """`engine` has loaded the model."""
        self._checkpoint, self._score = trained.prefix, score
        self._session, self._graph = engine.extend(functools.partial(self._build, trained))

    def _build(self, trained: Trained) -> _Graph:
        inputs = graph.inputs(trained)
        baseline = tf1.placeholder(tf.int32, [None, None], "baseline")
        alphas = tf1.placeholder(tf.float32, [None], "alphas")
        weights = tf1.placeholder(tf.float32, None, "weights")
        points = tf1.placeholder(tf.int32, [None], "points")
        path: list[tf.Tensor] = []

        def lookup(table: tf.Variable, ids: tf.Tensor) -> tf.Tensor:
            start = tf.gather(table, tf.reshape(baseline, [-1]))  # [C R T, D]
            change = tf.gather(table, ids) - start
            alpha = tf.repeat(alphas, tf.shape(baseline)[1])[:, None]
            path.extend([start + alpha * change, change])
            return path[0]

        execution = graph.PLAIN.for_rows(trained.config, trained.max_seq_length)
        by_blocks = execution.queries_at_a_time > 0  # long texts: their gradients are hand-written
        execution = dataclasses.replace(execution, custom_gradients=by_blocks)
        outputs = graph.compute(trained, inputs, execution, lookup).logits
        (field, *_) = heads.make_head(trained.head).outputs
        values = self._score(outputs[field.name], weights, points)
        (gradient,) = tf.gradients(values, path[:1])
        slopes = tf.reshape(tf.reduce_sum(gradient * path[1], axis=-1), tf.shape(baseline))
        return _Graph(inputs, baseline, alphas, weights, points, values, slopes)

    def compute(
        self, explained: _ExplainedOutput, ids: Array, alphas: Array, part: slice, *, slopes: bool = True
    ) -> tuple[Floats, Array | None]:
        """Values [C] and slopes [C, R, T], if required, of a part of the rows at points: ids [C, R, T] and alphas [C]."""
        built, (count, rows, tokens) = self._graph, ids.shape
        weights = explained.weights[part]
        feeds = {
            **{built.inputs[name]: np.tile(field[part], [count, 1]) for name, field in explained.batch.items()},
            built.inputs[_IDS]: ids.reshape(count * rows, tokens),
            built.baseline: np.tile(explained.baseline[part], [count, 1]),
            built.alphas: np.repeat(alphas, rows),
            built.weights: np.tile(weights, [count, *[1] * (weights.ndim - 1)]),
            built.points: np.repeat(np.arange(count), rows),
        }
        with readable_errors(self._checkpoint):
            values, *of_tokens = self._session.run([built.values, *([built.slopes] if slopes else [])], feeds)
        return values.astype(np.float64), of_tokens[0].reshape(ids.shape) if slopes else None


class _ExplainedOutput(NamedTuple):
    """A number that the model computes from an example, as a function of token ids and alphas."""

    gradients: _Gradients
    label: Any  # see `Target`
    batch: Mapping[str, Array]  # of `INPUTS`, [R, T] each
    baseline: Array  # [R, T] ids, special tokens as in the input
    weights: Array  # see `Target`
    words: Words
    vocabulary: Vocabulary
    adds_rows: bool  # see `Explained`

    def values(self, ids: Callable[[slice, slice], Array], alphas: Array) -> Floats:
        """[C] at points with alphas [C]; `ids` makes those [C, R, T] of a part of the points and rows."""
        total = np.zeros(len(alphas))
        for points, rows in self._parts(len(alphas)):
            total[points] += self.gradients.compute(self, ids(points, rows), alphas[points], rows, slopes=False)[0]
        return total

    def integral(self, alphas: Array, factors: Array) -> Floats:
        """[R, T] sum of the slopes at alphas [C], multiplied by factors [C]."""
        total = np.zeros(self.baseline.shape)
        for points, rows in self._parts(len(alphas)):
            of_rows = self.batch[_IDS][rows]
            ids = np.broadcast_to(of_rows, [len(alphas[points]), *of_rows.shape])
            _, slopes = self.gradients.compute(self, ids, alphas[points], rows)
            total[rows] += np.tensordot(factors[points], cast(Array, slopes).astype(np.float64), 1)
        return total

    def _parts(self, count: int) -> Iterator[tuple[slice, slice]]:
        """Points and rows that are computed together: all rows of several points, or some of one."""
        rows, tokens = self.baseline.shape
        of_rows = max(1, _TOKENS // tokens) if self.adds_rows else rows
        of_points = max(1, _TOKENS // self.baseline.size)
        for point, row in itertools.product(range(0, count, of_points), range(0, rows, of_rows)):
            yield slice(point, point + of_points), slice(row, row + of_rows)

    def by_word(self, of_tokens: Array) -> Floats:
        """Adds values of tokens [R, T] to those of words [W]."""
        real = self.words.of_tokens != SPECIAL
        sums: Floats = np.bincount(self.words.of_tokens[real], of_tokens[real], len(self.words.texts)).astype(np.float64)
        return sums


class _Scores(NamedTuple):
    of_words: Floats  # [W]
    output: float
    baseline: float
    error: float
    steps: int


def _error(total: float, change: float) -> float:
    return abs(total - change) / max(abs(change), _LEAST_CHANGE)


def _integrated_gradients(explained: _ExplainedOutput, *, steps: int, most_steps: int) -> _Scores:
    """Doubles the points of the quadrature until the scores add up to the change of the output."""
    ids, ends = explained.batch[_IDS], np.array([0.0, 1.0])
    baseline, output = explained.values(lambda points, rows: np.stack([ids[rows]] * len(ends[points])), ends).tolist()
    while True:
        of_tokens = explained.integral(*_quadrature(steps))
        error = _error(float(of_tokens.sum()), output - baseline)
        if error <= _TOLERANCE or 2 * steps > most_steps:
            return _Scores(explained.by_word(of_tokens), output, baseline, error, steps)
        steps *= 2


@functools.lru_cache(maxsize=32)
def _quadrature(points: int) -> tuple[Floats, Floats]:
    """Gauss-Legendre nodes and weights from 0 to 1."""
    nodes, weights = np.polynomial.legendre.leggauss(points)
    return (nodes + 1) / 2, weights / 2


def _occlusion(explained: _ExplainedOutput, **_: int) -> _Scores:
    """The drop of the output if a word is masked, for each word; the baseline masks all."""
    ids, word, mask_id = explained.batch[_IDS], explained.words.of_tokens, explained.vocabulary.mask_id
    alphas = np.ones(2 + len(explained.words.texts))  # of the text, the baseline and each word

    def occluded(points: slice, rows: slice) -> Array:
        numbers = np.arange(-2, len(explained.words.texts))[points, None, None]
        is_masked = np.where(numbers == -1, word[rows] != SPECIAL, (word[rows] == numbers) & (numbers >= 0))
        return np.where(is_masked, mask_id, ids[rows])

    output, baseline, *without = explained.values(occluded, alphas).tolist()
    drops = output - np.array(without, np.float64)
    return _Scores(drops, output, baseline, _error(float(drops.sum()), output - baseline), 0)


_Method = Callable[..., _Scores]
_METHODS: Mapping[str, _Method] = {
    INTEGRATED_GRADIENTS: _integrated_gradients,
    OCCLUSION: _occlusion,
}


class Explainer(Session):
    """Explains predictions of a model by float32 gradients in TensorFlow, whatever engine predicts."""

    def __init__(self, model: Predictor) -> None:
        """Shares the weights of a model that TensorFlow computes."""
        if model.inference.make is TensorFlowEngine:
            super().__init__(model.trained, model.inference, weights_of=model)
        else:
            own = dataclasses.replace(model.inference, make=TensorFlowEngine, batching=lambda *_: TO_LONGEST)
            super().__init__(model.trained, own)
        self._family = model.family
        self._gradients: tuple[object, _Gradients] | None = None  # with the graph that they are in

    def explain(
        self,
        examples: Sequence[Any],
        method: str = INTEGRATED_GRADIENTS,
        label: Any = None,
        word: int | None = None,
        steps: int = STEPS,
        most_steps: int = MOST_STEPS,
    ) -> list[Explanation]:
        """Scores words of examples from `Reader.examples`; see `Model.explain`. Steps are doubled up to `most_steps`."""
        if method not in METHODS:
            raise FlagError(f"--method: {unknown_name('method', method, METHODS)}")
        if self._family.kind not in EXPLAINED:
            raise FlagError(f"explanations: {unknown_name('kind of model', self._family.kind, EXPLAINED)}")
        steps = checked(Setting("steps", int, STEPS, "", 1, highest=MOST_STEPS), steps)
        refuse_idle(method, steps)
        word = checked(Setting("word", int, None, "", 0), word)
        score = functools.partial(_METHODS[method], steps=steps, most_steps=most_steps)
        return [self._explanation(example, method, label, word, score) for example in examples]

    def _explanation(self, example: Any, method: str, label: Any, word: int | None, score: _Method) -> Explanation:
        with self._turn():
            engine = cast(TensorFlowEngine, self._loaded(self.trained))
            explained = self._explained_output(engine, example, label, word)
            scores = score(explained)
        of_words, words = tuple(scores.of_words.tolist()), explained.words
        facts = scores.output, scores.baseline, scores.error, scores.steps
        return Explanation(example.guid, explained.label, words.texts, of_words, words.segments, method, *facts)

    def _explained_output(self, engine: TensorFlowEngine, example: Any, label: Any, word: int | None) -> _ExplainedOutput:
        family, kind, vocabulary = self._family, EXPLAINED[self._family.kind], self.trained.vocabulary
        tokenizer = TracingTokenizer(self.trained.tokenizer, whole=kind.whole_words)
        traced = family.features([example], tokenizer, self.trained.limits)
        features = dataclasses.replace(traced, token_ids=tokenizer.piece_ids(traced.token_ids))
        (prediction,) = family.listed(family.predictions(engine.outputs(features), features, [example]), [example])
        target = kind.target(Case(features, prediction, family.labels, label, word))
        padded = features.batch(target.rows, int(features.lengths[target.rows].max()))
        batch = {field.name: padded[field.name] for field in INPUTS}
        words = tokenizer.words(traced, target.rows)
        baseline = np.where(words.of_tokens == SPECIAL, batch[_IDS], vocabulary.pad_id)
        if self._gradients is None or self._gradients[0] is not engine.graph:
            self._gradients = engine.graph, _Gradients(engine, self.trained, kind.score)
        return _ExplainedOutput(
            self._gradients[1],
            target.label,
            batch,
            baseline,
            target.weights,
            words,
            vocabulary,
            kind.adds_rows,
        )


def of_model(model: Predictor) -> Explainer:
    return Explainer(model)
