"""Answers with the real default weights against BertForQuestionAnswering of `transformers`, on the same windows.

For the environment of the other side see peers.py.
"""

import numpy as np
import pytest
import tensorflow as tf

from bert_tf import home
from bert_tf.checkpoints import huggingface
from bert_tf.checkpoints.reader import CheckpointReader
from bert_tf.config import BertConfig
from bert_tf.extensions.span.family import SpanFamily
from bert_tf.extensions.span.head import SpanHead
from bert_tf.modeling.encoder import bert
from bert_tf.modeling.execution import Execution
from bert_tf.tasks.base import Limits
from bert_tf.tasks.registry import get_task
from bert_tf.tokenization.vocabulary import Vocabulary
from bert_tf.tokenization.wordpiece import WordPieceTokenizer
from tests.conformance import peers
from tests.graphs import evaluate

pytestmark = pytest.mark.slow

TOKENS = 40  # so that contexts have several windows
FAMILY = SpanFamily(doc_stride=12)


def logits_of(batch, config, weights):
    def build():
        names = ("input_ids", "input_mask", "segment_ids")
        features = {name: tf.constant(batch[name]) for name in names}
        encoded = bert(*features.values(), config, Execution())
        return SpanHead().compute(encoded, features, config, Execution())["span_logits"]

    return evaluate(build, weights)


@pytest.fixture(scope="module")
def compared(tmp_path_factory):
    """Questions, their features, and the logits of their tokens by both."""
    folder = tmp_path_factory.mktemp("oracle")
    published = peers.default_checkpoint(folder)
    config = BertConfig.from_json_file(published / huggingface.PUBLISHED_CONFIG_NAME)
    reader = CheckpointReader(published / huggingface.CHECKPOINT_NAME)
    random = np.random.default_rng(0)
    head = {name: random.normal(0, 0.3, shape).astype(np.float32) for name, shape in SpanHead().variables(config).items()}

    examples = get_task("SQuAD").examples(home.SAMPLE / "SQuAD", "train")
    tokenizer = WordPieceTokenizer(Vocabulary.from_file(published / huggingface.VOCABULARY_NAME))
    features = FAMILY.features(examples, tokenizer, Limits(TOKENS))
    batch = features.batch(np.arange(len(features)), TOKENS)
    ours = logits_of(batch, config, {**{name: reader[name] for name in reader.shapes}, **head})

    np.savez(folder / "batch.npz", **batch, weights=head["cls/squad/output_weights"], bias=head["cls/squad/output_bias"])
    peers.run("transformers_answer.py", folder, folder / "batch.npz", folder / "theirs.npz")
    theirs = np.load(folder / "theirs.npz")["logits"]
    real = batch["input_mask"] == 1
    return examples, features, ours[real], theirs[real]


def test_logits_agree(compared):
    _, _, ours, theirs = compared
    np.testing.assert_allclose(ours, theirs, rtol=0, atol=1e-4)


def test_answers_agree(compared):
    examples, features, *both = compared
    assert len(features) > len(examples)
    ours, theirs = (FAMILY.predictions({"span_logits": logits}, features, examples) for logits in both)
    assert [one.label for one in ours.each] == [one.label for one in theirs.each]
    assert ours.loss == pytest.approx(theirs.loss, rel=1e-5)
