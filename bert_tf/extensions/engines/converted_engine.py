"""Engines with a converted model: same batches, features and outputs as TensorFlow's."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

from bert_tf.batch.engine import Compute, InferenceOptions, computed
from bert_tf.batch.trained import Trained, refuse_what_is_no_number
from bert_tf.features.batching import Batching
from bert_tf.features.columns import Features
from bert_tf.fields import INPUTS
from bert_tf.head_spec import HeadSpec
from bert_tf.io.log_form import log
from bert_tf.tasks.base import Outputs
from bert_tf.training.settings import INT8

Open = Callable[[Trained, int], Compute]  # from a model and a number of threads

_MOST_HEADS = 2  # of one checkpoint: the first and the latest, since each holds all weights
_TOKENS = 768  # of a batch: a layer's tensors stay in a core's L2 cache
# A request of few rows is padded to a multiple of 8 tokens, since an engine prepares again for each new length. int8 rows
# always are, in batches of one length: a sum rounded differently can become another integer.
_FEW, _MULTIPLE = 8, 8
_MUCH = 2 << 30  # bytes of a layer's attention


class ConvertedEngine:
    """Runs one converted model; see `batch.engine.Engine`."""

    def __init__(self, inference: InferenceOptions, precision: str, open_model: Open) -> None:
        """Opens nothing yet."""
        self._inference, self._precision, self._open = inference, precision, open_model
        self._weights: tuple[object, ...] = ()  # see `Trained.weights`
        self._by_head: dict[HeadSpec, Compute] = {}  # of these weights
        self._trained: Trained | None = None
        self._has_warned = False

    def load(self, trained: Trained) -> int:
        """Raises CheckpointError if damaged, not finite, or of another model."""
        if self._trained is not trained:
            if not self._weights or self._weights != trained.weights:
                self.close()
            if trained.head not in self._by_head:
                compute = self._open(trained, self._inference.threads)
                if len(self._by_head) == _MOST_HEADS:
                    self._by_head.popitem()
                self._by_head[trained.head] = compute
            self._trained, self._weights = trained, trained.weights
        return trained.step

    def outputs(self, features: Features) -> Outputs:
        """See `Forward.outputs`; ValueError if nothing is loaded."""
        if self._trained is None:
            raise ValueError("no weights are loaded")
        trained, inference = self._trained, self._inference
        batching = inference.batching(trained.config, trained.max_seq_length)
        compute = self._by_head[trained.head]
        self._warn_of_long(trained, int(features.lengths.max(initial=0)))
        results = computed(
            trained.outputs,
            features,
            lambda batch: compute({field.name: batch[field.name] for field in INPUTS}),
            batch_size=inference.batch_size,
            batching=batching_of(batching, self._precision, rows=len(features)),
        )
        refuse_what_is_no_number(results, trained.prefix)
        return results

    def _warn_of_long(self, trained: Trained, tokens: int) -> None:
        need = (
            3 * 4 * trained.config.num_attention_heads * tokens**2
        )  # scores, those with the mask, and weights, all of a layer
        if need > _MUCH and not self._has_warned:
            self._has_warned = True
            log.warning(
                "%s: a text of %d tokens takes about %.0f GB, since this engine holds the attention of all tokens to all;"
                " --engine=tensorflow computes it in parts",
                *(trained.prefix, tokens, need / 1e9),
            )

    def close(self) -> None:
        self._weights, self._trained = (), None
        self._by_head.clear()


def batching_of(batching: Batching, precision: str, *, rows: int) -> Batching:
    """How a converted model takes a number of rows."""
    apart = precision == INT8
    multiple = max(batching.multiple, _MULTIPLE if rows <= _FEW or apart else 1)
    return dataclasses.replace(batching, eval_tokens=batching.eval_tokens or _TOKENS, multiple=multiple, apart=apart)
