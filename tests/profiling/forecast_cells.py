"""Steps whose forecast memory is compared with their live peak."""

import dataclasses
from collections.abc import Mapping
from typing import Any, NamedTuple

from bert_tf.head_spec import CHOICE, CONTRASTIVE, PRETRAINING, SIMILARITY, SPAN, TAGS, HeadSpec
from bert_tf.modeling.heads import registry as heads
from bert_tf.profiling.forecast.compute_options import PUBLISHED, ComputeOptions
from bert_tf.profiling.forecast.step_peak import Forecast, forecast
from bert_tf.training.memory_preflight import with_head
from tests.profiling import steps


class Cell(NamedTuple):
    """A step: sizes of the model and of the batch, and what differs from the default options."""

    hidden: int
    layers: int
    tokens: int
    batch_size: int
    changes: Mapping[str, Any]
    head: HeadSpec = steps.CLASSIFIER

    def compare(self, *, in_turn: bool = False, **sizes: Any) -> tuple[Forecast, int, int]:
        """Returns the forecast, the bytes of all variables, and the live peak of what the step itself allocates."""
        model = steps.config(self.hidden, self.layers, **sizes)
        options = with_head(ComputeOptions(**{**self.changes, "on_gpu": False}), heads.make_head(self.head), model)
        memory, state = steps.memory_of(model, self.tokens, self.batch_size, options, self.head, in_turn=in_turn)
        return forecast(model, tokens=self.tokens, batch_size=self.batch_size, options=options), state, memory.peak


GRID = (
    Cell(128, 2, 256, 4, {"padding": 0.5}),
    Cell(128, 2, 128, 8, {"recompute": True}),
    Cell(128, 2, 128, 16, {"micro_batches": 4}),
    Cell(128, 2, 128, 8, {"frozen": frozenset({"embeddings", 0})}),
    Cell(128, 2, 128, 8, dataclasses.asdict(PUBLISHED)),
)
_BY_DISTANCE = {"model_type": "deberta-v2", "positions": "disentangled", "position_buckets": 256, "type_vocab_size": 0}
_WINDOWS = {"model_type": "modernbert", "positions": "rotary", "attention_window": 64, "whole_attention_every": 3}
_WINDOWS |= {"norm_first": True, "gated": True, "biases": False, "output_transform": True, "type_vocab_size": 0}
_LONG = {"max_position_embeddings": 2048, "whole_attention_every": 1}
ENCODERS = (  # other than BERT
    (Cell(128, 4, 256, 4, {"padding": 0.3}), {**_BY_DISTANCE, "hidden_act": "gelu_erf"}),
    (Cell(128, 4, 256, 4, {"padding": 0.3}), {**_WINDOWS, "hidden_act": "gelu_erf", "attention_probs_dropout_prob": 0.0}),
    (Cell(128, 4, 1100, 1, {}), {**_WINDOWS, **_LONG, "hidden_act": "gelu_erf", "attention_probs_dropout_prob": 0.0}),
    (Cell(128, 4, 128, 8, {"padding": 0.3}), {"model_type": "albert", "layer_groups": 1, "embedding_size": 64}),
)
WIDER = (
    Cell(128, 3, 256, 4, {"padding": 0.5}),
    Cell(128, 3, 128, 8, {"recompute": True}),
    Cell(128, 3, 128, 8, {"frozen": frozenset({"embeddings", 0})}),
    Cell(64, 2, 64, 16, {}),
    Cell(256, 3, 64, 8, {}),
    Cell(128, 3, 32, 4, {}),
    *(Cell(hidden, layers, 128, 8, {}) for hidden, layers in ((64, 1), (64, 6), (192, 4), (384, 6), (512, 2))),
    *(Cell(128, 4, tokens, 8, {}) for tokens in (16, 64, 256, 384)),
    *(Cell(128, 4, 64, batch, {}) for batch in (1, 4, 16, 64)),
    Cell(128, 4, 128, 8, {"precision": "bfloat16"}),
    Cell(128, 4, 128, 16, {"averages": True}),
    Cell(256, 4, 32, 2, {"defer_embeddings": False}),
    Cell(256, 4, 32, 2, {"fused_adam": False}),
    Cell(256, 4, 32, 2, {"lamb": True}),
    Cell(256, 4, 32, 4, {"micro_batches": 4}),
    Cell(128, 4, 128, 16, {"precision": "float16"}),
    Cell(128, 4, 128, 16, {"precision": "bfloat16", "custom_gradients": False}),
    Cell(128, 4, 128, 16, {"precision": "bfloat16", "recompute": True}),
    Cell(128, 6, 128, 16, {"recompute": True, "custom_gradients": False}),
    Cell(128, 6, 128, 32, {"recompute": True, "micro_batches": 4}),
    Cell(128, 4, 512, 4, {"recompute": True}),
    Cell(128, 4, 128, 16, {"frozen": frozenset({1, 2})}),
    Cell(128, 4, 128, 16, {"frozen": frozenset({"embeddings"})}),
    Cell(128, 4, 128, 16, {"last_layer_cls_only": False}),
    Cell(128, 4, 128, 16, {"pack_tokens": False, "padding": 0.5}),
)

# In a layer so narrow the head and its loss are the most.
NARROW = {"num_attention_heads": 1, "intermediate_size": 32, "vocab_size": 300}
MANY_WORDS = {"vocab_size": 5000}
_MANY_TAGS = HeadSpec(1000, TAGS)
_MASKED = HeadSpec(2, PRETRAINING)
HEADS = (
    (Cell(256, 1, 64, 16, {"padding": 0.5}, _MANY_TAGS), NARROW),
    (Cell(256, 1, 64, 16, {"padding": 0.5}, HeadSpec(1, SIMILARITY)), NARROW),
    (Cell(256, 1, 64, 16, {"places": 10}, _MASKED), MANY_WORDS),
)
MORE_HEADS = (
    *((Cell(256, 1, 64, 32, {"padding": padding}, _MANY_TAGS), NARROW) for padding in (0.0, 0.8)),
    (Cell(256, 1, 64, 32, {"precision": "bfloat16"}, HeadSpec(9, TAGS)), NARROW),
    (Cell(256, 4, 64, 32, {"recompute": True}, HeadSpec(1, SIMILARITY)), NARROW),
    (Cell(256, 2, 128, 16, {}, HeadSpec(2, SPAN)), NARROW),
    (Cell(256, 4, 64, 32, {}, HeadSpec(1, CHOICE)), NARROW),
    (Cell(256, 2, 64, 32, {}, HeadSpec(1, CONTRASTIVE, (("temperature", 0.05),))), NARROW),
    (Cell(256, 3, 64, 16, {"places": 10}, _MASKED), MANY_WORDS),
    (Cell(256, 2, 128, 16, {"places": 20, "last_layer_cls_only": False}, _MASKED), MANY_WORDS),
    (Cell(256, 2, 128, 16, {"places": 20, "pack_tokens": False}, _MASKED), MANY_WORDS),
    (Cell(256, 2, 128, 32, {"places": 20, "micro_batches": 4}, _MASKED), MANY_WORDS),
    (Cell(256, 2, 128, 32, {"places": 20, "precision": "bfloat16"}, _MASKED), MANY_WORDS),
    (Cell(256, 2, 128, 32, {"places": 20}, HeadSpec(2, PRETRAINING, (("sampled_softmax", 500),))), MANY_WORDS),
)
