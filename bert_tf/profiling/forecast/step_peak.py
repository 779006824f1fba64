"""Forecast of a training step's peak memory, before anything is built. Imports no TensorFlow.

Walks through the step: weights and optimizer slots are always there; the forward pass adds kept tensors block by
block; the backward pass frees them from the top and leaves gradients, which all stay until their global norm is
known; the update frees them. The peak is the largest sum: at the end of the forward pass for large batches, at
gradients and update for small ones.
"""

from __future__ import annotations

import dataclasses
import functools
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import NamedTuple

from bert_tf.config import BertConfig
from bert_tf.head_spec import Sizes
from bert_tf.position_kinds import ABSOLUTE, ROTARY
from bert_tf.profiling.forecast.activations import (
    ALL,
    FLOAT,
    PADDED,
    QUERIES,
    ROWS,
    SCORES,
    SELECTED,
    WIDE,
    Block,
    Shape,
    elements,
    layer_blocks,
)
from bert_tf.profiling.forecast.compute_options import BYTES, EMBEDDINGS, POOLER, ComputeOptions, Part, classifier

_ROW_HISTORY = 198  # missed steps combined in the update of a word, see `optimization.deferred`
# Share of the allocator's gaps: the largest measured, rounded up. By whether memory is allocated as needed, in pieces
# that are never joined, and whether batches of changing shapes have gradients of the whole word table.
_GAPS = {(False, False): 0.06, (False, True): 0.09, (True, False): 0.17, (True, True): 0.23}
LEAST, MOST = 1 << 11, 1 << 15  # tokens of inference: the first suits a CPU; a large GPU is busy with the second
_SURE = 0.5  # usable share of the remaining memory: batch sizes vary, and products need workspaces
_TRAINED = 4  # copies of the weights that training keeps between steps: moments and its own, no gradients
_FULLEST = 3.0  # standard deviations of the fullest of many batches above the mean


@dataclasses.dataclass(frozen=True)
class Forecast:
    """Bytes at the peak of a step, by part."""

    weights: int  # float32, including those of an evaluating session
    slots: int  # moments, moving average, other state of the update
    gradients: int  # alive at the peak
    activations: int  # kept for gradients not computed yet
    workspace: int  # temporary tensors, word rows, half-precision copies
    moment: str  # of the peak: "forward pass, layer 11"
    gaps: int  # rounding and fragmentation of the GPU allocator

    @property
    def peak(self) -> int:
        """Sum of all tensors, without gaps."""
        return self.weights + self.slots + self.gradients + self.activations + self.workspace

    @property
    def needed(self) -> int:
        return self.peak + self.gaps

    @property
    def of_step(self) -> int:
        """Bytes allocated within the step: all but weights and slots."""
        return self.peak - self.weights - self.slots


# Bytes alive at a moment, without weights and slots: the moment; gradients, activations, workspace.
_Live = tuple[str, int, int, int]


class _Stage(NamedTuple):
    """Bytes of a piece of the model with a forward and a backward pass."""

    name: str
    kept: int  # for the backward pass
    forward: int  # temporary
    backward: Sequence[tuple[int, int]]  # what is kept in addition, and temporary; a layer that is computed again has two parts
    gradient: int  # of its weights


def forecast(config: BertConfig, tokens: int, batch_size: int, options: ComputeOptions = ComputeOptions()) -> Forecast:  # noqa: B008 (it is frozen)
    """Forecasts the peak of a training step; `batch_size` counts examples over all replicas and micro-batches."""
    step = _Step(config, tokens, batch_size, options)
    moment, gradients, activations, workspace = max(step.moments(), key=lambda live: sum(live[1:]))
    parts = (step.weights, step.slots, gradients, activations, workspace)
    return Forecast(*parts, moment, int(sum(parts) * gap_share(options)))


def can_spare(config: BertConfig, options: ComputeOptions) -> bool:
    """Whether the last layer can compute less than all tokens, see `modeling.encoder`."""
    relative = options.places > 0 and config.positions not in (ABSOLUTE, ROTARY)
    return not (options.reads_tokens or relative or config.has_whole_last_layer)


_Shapes = Sequence[tuple[int, ...]]  # of variables


def _shapes(config: BertConfig, head: _Shapes) -> dict[Part | None, _Shapes]:
    """Returns the shapes of all variables but the table of words, by part of the model."""
    d, i, e = config.hidden_size, config.intermediate_size, config.embedding_width
    projection: _Shapes = [(e, d), (d,)] if config.projects_embeddings else []
    vectors = [*[(d,)] * 9, (i,)] if config.biases else [(d,)] * 2
    layer: _Shapes = [*[(d, d)] * 4, (d, 2 * i if config.gated else i), (i, d), *vectors]
    kind = config.position_kind
    of_positions: _Shapes = [*([(config.max_position_embeddings, e)] if kind.has_table else []), *kind.tables(config).values()]
    tables: _Shapes = [(config.type_vocab_size, e), *of_positions]
    norms: _Shapes = [*[(e,)] * (1 + config.biases), *[(d,)] * (len(kind.norms) * (1 + config.biases))]
    return {
        EMBEDDINGS: [*tables, *norms, *projection],
        **{number: layer if number < config.weighted_layers else [] for number in range(config.num_hidden_layers)},
        0: layer[:-1] if config.norm_first else layer,  # it has one LayerNorm
        POOLER: [(d, d), *[(d,)] * (config.biases + config.output_transform)],
        None: [*head, *([(d,)] if config.norm_first else [])],
    }


def _matrix_sizes(shapes: _Shapes) -> list[int]:
    """Returns the numbers of elements of matrices and tables, which are decayed and multiplied."""
    return [math.prod(shape) for shape in shapes if len(shape) > 1]


def _learned(held: Mapping[Part | None, _Shapes], options: ComputeOptions) -> dict[Part | None, _Shapes]:
    """Returns the shapes of what is trained, but the table of words, by part of the model."""
    if options.adapted is None:
        return {part: shapes for part, shapes in held.items() if part not in options.frozen}
    frozen = options.frozen - {EMBEDDINGS}  # of which the table of words is, and others may be trained
    trained: dict[Part | None, _Shapes] = {part: shapes for part, shapes in options.adapted.trained if part not in frozen}
    return {**{part: shapes for part, shapes in trained.items() if part in held}, None: held[None]}


class _Step:
    def __init__(self, config: BertConfig, tokens: int, batch_size: int, options: ComputeOptions) -> None:
        self._config, self._options = config, options
        own_batch = -(-batch_size // options.replicas)
        examples = self._sequences(-(-own_batch // options.micro_batches))
        rows = max(examples, round(examples * tokens * self._real(examples))) if options.pack_tokens else examples * tokens
        self._shape = Shape(examples, tokens, rows, BYTES[options.precision])
        self._words = config.vocab_size * config.embedding_width
        drawn = self._sequences(own_batch)
        read = max(1, round(drawn * tokens * (self._real(drawn) if options.pack_tokens else 1.0)))
        # As if words were drawn uniformly: real text repeats itself more.
        unique = config.vocab_size * -math.expm1(read * math.log1p(-1.0 / config.vocab_size)) if config.vocab_size > 1 else 1.0
        self._unique = math.ceil(unique)
        head = classifier(2, config.hidden_size) if options.head is None else options.head
        held = _shapes(config, head)
        if options.host_embeddings:
            del held[EMBEDDINGS]
        self._matrices = {part: _matrix_sizes(shapes) for part, shapes in held.items()}
        self._sizes = {part: sum(map(math.prod, shapes)) for part, shapes in held.items()}
        self._has_words = not options.host_embeddings
        learned = _learned(held, options)
        self._learned = {part: sum(map(math.prod, shapes)) for part, shapes in learned.items()}  # numbers that are trained
        self._learned_matrices = {part: _matrix_sizes(shapes) for part, shapes in learned.items()}
        added = options.adapted.added if options.adapted else ()
        self._added = sum(math.prod(shape) for _, shapes in added for shape in shapes)
        self._trains_words = self._has_words and EMBEDDINGS not in options.frozen
        self._defers = options.defers and self._has_words
        self._tied = options.tied_words and self._trains_words

    def _sequences(self, examples: int) -> int:
        """Returns the rows of the fullest of many batches, one of which has the example with the most."""
        options = self._options
        with_most = options.most_rows + round((examples - 1) * options.rows_per_example)
        fullest = round(examples * options.rows_per_example + _FULLEST * options.rows_spread * math.sqrt(examples))
        return min(examples * options.most_rows, max(with_most, fullest))

    def _real(self, examples: int) -> float:
        """Returns the share of real tokens in the fullest of many batches."""
        return min(1.0, 1.0 - self._options.padding + _FULLEST * self._options.spread / math.sqrt(examples))

    @property
    def weights(self) -> int:
        sessions = 2 if self._options.evaluates else 1
        numbers = sum(self._sizes.values()) + self._words * self._has_words
        return FLOAT * (sessions * numbers + self._added)

    @property
    def slots(self) -> int:
        copies = 3 if self._options.averages else 2  # two moments, and the moving average
        moments = copies * (sum(self._learned.values()) + self._words * self._trains_words)
        current_at = FLOAT * self._config.vocab_size if self._defers else 0
        return FLOAT * moments + current_at

    def moments(self) -> Iterator[_Live]:
        if self._defers:
            histories = self._unique * _ROW_HISTORY
            rows = self._unique * self._config.embedding_width
            at_a_time = 17 if self._options.averages else 10
            yield "words made current", 0, 0, FLOAT * at_a_time * (histories + rows)
        yield from self._passes()
        gradients = self._all_gradients() * (2 if self._options.replicas > 1 else 1)  # beside their sums over replicas
        yield "update", gradients, 0, self._always() + self._update()

    def _passes(self) -> Iterator[_Live]:
        always = self._always() + self._half_kernels()
        stages, needed = self._stages, self._first_trained()
        sums = self._all_gradients() if self._options.micro_batches > 1 else 0
        held = 0
        for index, stage in enumerate(stages):
            held += stage.kept if index >= needed else 0
            yield f"forward pass, {stage.name}", sums, held, always + stage.forward
        gradients = sums
        for stage in reversed(stages[needed:]):
            for more, beside in stage.backward:
                yield f"backward pass, {stage.name}", gradients + stage.gradient, held + more, always + beside
            held -= stage.kept
            gradients += 0 if sums else stage.gradient

    def _first_trained(self) -> int:
        """Returns the index of the lowest stage that keeps anything."""
        # Wherever embeddings are stored, their gradient passes through all layers.
        if EMBEDDINGS not in self._options.frozen or self._learned.get(EMBEDDINGS):
            return 0
        layers = (n for n in range(self._config.num_hidden_layers) if self._trains_layer(n))
        lowest = next(layers, self._config.num_hidden_layers)
        return 1 + (lowest if self._options.recompute else 2 * lowest)

    def _trains_layer(self, number: int) -> bool:
        weights = self._config.weights_of_layer(number)
        return weights not in self._options.frozen if self._options.adapted is None else self._learned.get(weights, 0) > 0

    def _all_gradients(self) -> int:
        return sum(stage.gradient for stage in self._stages)

    @functools.cached_property
    def _stages(self) -> list[_Stage]:
        blocks = functools.lru_cache(layer_blocks)  # most layers are alike
        numbers = range(self._config.num_hidden_layers)
        layers = [stage for number in numbers for stage in self._layer_stages(number, blocks)]
        return [self._embedding_stage(), *layers, self._head_stage()]

    def _embedding_stage(self) -> _Stage:
        config, shape = self._config, self._shape
        d, f = config.hidden_size, FLOAT
        rows = shape.rows * d
        of_inputs = 0
        if self._trains_words:
            of_inputs = self._unique * d if self._defers else self._words
        output = rows * shape.number
        embedded = output
        if self._has_words:
            embedded += (output if config.hidden_dropout_prob else 0) + rows * f  # dropout's mask, and LayerNorm's output
        joined = self._tied and self._words > 0  # its gradient is added to that of the head
        beside = 3 * rows * f + (f * of_inputs if joined else 0)
        own_gradient = f * (self._gradient_of(EMBEDDINGS) + (0 if joined else of_inputs))
        return _Stage("embeddings", embedded, 2 * rows * f, [(0, beside)], own_gradient)

    def _layer_stages(self, number: int, blocks: Callable[..., tuple[Block, Block]]) -> Iterator[_Stage]:
        config, options, shape = self._config, self._options, self._shape
        last = number == config.num_hidden_layers - 1
        window = config.window_of_layer(number)
        spares = last and options.last_layer_cls_only and can_spare(config, options)
        selected = 1 + options.places if spares else None
        reads = ALL if options.adapted is None else options.adapted.reads
        reads = reads if self._trains_layer(number) else frozenset()
        attention, feed_forward = blocks(
            shape, config, custom_gradients=options.custom_gradients, selected=selected, reads=reads, window=window
        )
        name, gradient = f"layer {number}", FLOAT * self._gradient_of(number)
        upper = min(gradient, FLOAT * 2 * config.hidden_size * config.intermediate_size)  # the feed-forward part's matrices
        if options.recompute and not last:
            # The forward pass lets go of a block's tensors as soon as the next has read them.
            beside = max(attention.total + attention.forward, feed_forward.total + feed_forward.forward)
            # With custom gradients, the forward pass's inputs of GELU's derivative still exist when the gradient arrives.
            both = (feed_forward.forward, feed_forward.backward)
            beside_gelu = sum(both) if options.custom_gradients else max(both)
            again = [(attention.total + feed_forward.total, beside_gelu), (attention.total, attention.backward)]
            yield _Stage(name, shape.rows * config.hidden_size * shape.number, beside, again, gradient)
            return
        for part, block, share in (("attention", attention, gradient - upper), ("feed-forward", feed_forward, upper)):
            yield _Stage(f"{name}, {part}", block.total, block.forward, [(0, block.backward)], share)

    def _head_stage(self) -> _Stage:
        stored, forward, backward = (FLOAT * self._numbers(sizes) for sizes in self._options.head_memory)
        words = self._words if self._tied else 0
        own_gradient = FLOAT * (self._gradient_of(POOLER) + self._gradient_of(None) + words)
        return _Stage("head", stored, forward, [(0, backward)], own_gradient)

    def _numbers(self, sizes: Sizes) -> int:
        shape, d = self._shape, self._config.hidden_size
        positions = shape.examples * shape.tokens
        places = shape.examples * self._options.places
        hidden = sizes.tokens * shape.rows + sizes.positions * positions + sizes.rows * shape.examples + sizes.places * places
        of_places = (sizes.place_numbers + sizes.scores * self._config.vocab_size) * places
        return round(d * hidden + sizes.numbers * positions + sizes.token_numbers * shape.rows + of_places)

    def _gradient_of(self, part: Part | None) -> int:
        return self._learned.get(part, 0)

    def _always(self) -> int:
        """Permanent bytes: rows of words and Adam's early products."""
        rows = 4 * self._unique * self._config.embedding_width + self._config.vocab_size if self._defers else 0
        return FLOAT * (rows + self._early_products())

    def _half_kernels(self) -> int:
        """Bytes of half-precision kernels, alive from their first operation to their gradient."""
        if self._shape.number == FLOAT:
            return 0
        tied = self._words if self._options.tied_words else 0
        layers = sum(sum(sizes) for part, sizes in self._matrices.items() if isinstance(part, int))
        return self._shape.number * (layers + tied)

    def _early_products(self) -> int:
        """Moments and weights times their factors: in an unfused update they need no gradient and are computed early."""
        if self._options.fused_adam and not self._options.lamb:
            return 0
        table = self._words if self._trains_words and not self._defers else 0
        return sum(2 * self._learned[part] + sum(self._learned_matrices[part]) for part in self._learned) + 3 * table

    def _update(self) -> int:
        """Temporary bytes of the update, without gradients: the weight decay terms."""
        words = self._words if self._trains_words and not self._defers else 0
        if self._options.on_gpu:
            return FLOAT * (sum(map(sum, self._learned_matrices.values())) + words)
        return FLOAT * max(words, *(2 * max(sizes, default=0) for sizes in self._learned_matrices.values()))


def gap_share(options: ComputeOptions) -> float:
    """Returns the overhead of TensorFlow's GPU memory allocator ("BFC") per byte of tensors.

    Sizes are rounded up to 256 bytes, a tensor may get a chunk of up to twice its size, and tensors of different
    sizes, which every packed batch has, leave unusable gaps. Without deferred updates the gradient of the whole word
    table is the largest tensor and fits no gap. Measurements: docs/notes/memory.md.
    """
    return _GAPS[options.growth, options.pack_tokens and options.whole_table]


def inference_tokens(config: BertConfig, *, length: int, memory: int, number: int = FLOAT, trains: bool = False) -> int:
    """Returns the most tokens per inference batch, including padding: a power of two from `LEAST` to `MOST`.

    `length` is that of the longest input, `memory` the GPU's bytes for tensors, `number` the bytes of an activation;
    with `trains`, another session trains the model on the same GPU.
    """
    weights = forecast(config, tokens=1, batch_size=1).weights
    free = (memory - weights * (1 + _TRAINED * trains)) * _SURE
    count = MOST
    while count > LEAST and inference_peak(config, examples=max(1, count // length), length=length, number=number) > free:
        count //= 2
    return count


def inference_peak(config: BertConfig, *, examples: int, length: int, number: int = FLOAT) -> int:
    """Peak bytes of a forward pass without weights; layers keep nothing. `number` is bytes per activation.

    A trace of BERT-Base at lengths 16 to 512 takes 0.56 of it with one operation at a time; a GPU runs several.
    """
    sizes = elements(Shape(examples, length, examples * length, number), config, selected=None)
    attention = 2 * sizes[ROWS] + 2 * sizes[PADDED] + 2 * sizes[QUERIES] + 2 * sizes[SCORES]
    feed_forward = 3 * sizes[ROWS] + sizes[SELECTED] + 3 * sizes[WIDE]
    return max(attention, feed_forward) * number
