"""What fits by the forecast: published largest batches, and the fewest parts."""

import dataclasses

import pytest

from bert_tf.config import BertConfig
from bert_tf.profiling.forecast.compute_options import PUBLISHED, ComputeOptions, Step
from bert_tf.profiling.forecast.fitting import MEBIBYTE, fits, in_fewest_parts, largest_batch
from bert_tf.profiling.forecast.step_peak import forecast, gap_share

BASE = BertConfig(vocab_size=30522)
LARGE = dataclasses.replace(BASE, hidden_size=1024, num_hidden_layers=24, num_attention_heads=16, intermediate_size=4096)
GTX_1060 = 5175 * MEBIBYTE
TWELVE_GB = 11441 * MEBIBYTE  # what TensorFlow takes of a card of 12 GB
TINY = Step(BertConfig.tiny(), 16, 4)  # two layers of 3 passes, hidden 8, intermediate 16


def test_largest_batch_is_the_last_that_fits():
    step = Step(BASE, 128, 1)
    largest = largest_batch(step, GTX_1060)
    assert [fits(step._replace(batch_size=size), GTX_1060) for size in (largest, largest + 1)] == [True, False]
    assert largest_batch(Step(BASE, 64, 1), 1000 * MEBIBYTE) == 0  # less than the weights
    assert largest_batch(Step(BertConfig.tiny(), 8, 1), 1 << 50) == 1 << 16  # the largest that is tried


# google-research/bert README, "Out-of-memory issues": a Titan X with 12 GB, TensorFlow 1.11.
@pytest.mark.parametrize(
    ("config", "published", "most"),
    [(BASE, (64, 32, 16, 14, 12, 6), 1.65), (LARGE, (12, 6, 2, 1, 0, 0), 2.0)],
    ids=["base", "large"],
)
def test_published_largest_batches_fit_and_not_much_more(config, published, most):
    assert fits(Step(BASE, 64, 12, PUBLISHED), GTX_1060)  # the published run of MRPC on that card
    largest = [largest_batch(Step(config, tokens, 1, PUBLISHED), TWELVE_GB) for tokens in (64, 128, 256, 320, 384, 512)]
    assert all(known <= batch <= max(1, most * known) for batch, known in zip(largest, published))


def test_fewest_parts():
    step = Step(BASE, 128, 100)
    count = in_fewest_parts(step, GTX_1060).options.micro_batches
    assert [fits(step.having(micro_batches=parts), GTX_1060) for parts in (count - 1, count)] == [False, True]
    assert in_fewest_parts(Step(BASE, 512, 8), 1500 * MEBIBYTE) is None  # one example is too much
    # Every part has an example on every replica.
    steps = [in_fewest_parts(Step(BASE, 512, 33, ComputeOptions(replicas=2, micro_batches=n)), 1 << 40) for n in (16, 17)]
    assert [step and step.options.micro_batches for step in steps] == [16, None]


@pytest.mark.parametrize("tokens", [64, 128, 512])
@pytest.mark.parametrize("options", [ComputeOptions(), ComputeOptions(recompute=True, padding=0.4, spread=0.2), PUBLISHED])
def test_more_parts_never_need_more_memory(tokens, options):
    """From two parts on, which is what the search for the fewest rests on."""
    step = Step(BASE, tokens, 24, options)
    peaks = [forecast(*step.having(micro_batches=parts)).peak for parts in range(2, 25)]
    assert peaks == sorted(peaks, reverse=True)


def test_a_step_fits_with_its_gaps():
    usage, grown = forecast(*TINY), forecast(*TINY.having(growth=True))
    assert [fits(TINY, memory) for memory in (usage.needed - 1, usage.needed)] == [False, True]
    assert dataclasses.replace(grown, gaps=usage.gaps) == usage
    assert grown.gaps > usage.gaps == int(usage.peak * gap_share(ComputeOptions())) > 0


@pytest.mark.parametrize(
    ("changes", "more"),
    [
        ({"defer_embeddings": False}, True),
        ({"replicas": 2}, True),
        ({"precision": "float16"}, True),
        ({"defer_embeddings": False, "pack_tokens": False}, False),
        ({"defer_embeddings": False, "frozen": frozenset({"embeddings"})}, False),
        ({"defer_embeddings": False, "host_embeddings": True}, False),
    ],
)
def test_whole_gradients_of_the_word_table_leave_more_gaps(changes, more):
    assert (gap_share(ComputeOptions(**changes)) > gap_share(ComputeOptions())) == more
