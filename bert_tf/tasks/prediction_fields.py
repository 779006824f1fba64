"""Fields of a prediction, by kind: those of `Family.listed`'s objects."""

from __future__ import annotations

from collections.abc import Mapping

from bert_tf import extension
from bert_tf.head_spec import CONTRASTIVE, SIMILARITY
from bert_tf.kinds import loaded
from bert_tf.tasks.predictions import Hint, hints_of
from bert_tf.tasks.sentence import predictions as sentence
from bert_tf.tasks.similarity import predictions as similarity

PREDICTIONS: Mapping[str, Mapping[str, Hint]] = {
    **{kind: hints_of(sentence.Prediction, **types) for kind, types in sentence.TYPES.items()},
    **dict.fromkeys((SIMILARITY, CONTRASTIVE), hints_of(similarity.Prediction)),
    **{kind: hints_of(loaded(new.prediction)) for kind, new in extension.kinds().items() if new.prediction},
}
