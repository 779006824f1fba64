"""Largest number of tokens to compute at a time without training, for a GPU's memory. Imports no TensorFlow."""

from __future__ import annotations

from bert_tf.config import BertConfig
from bert_tf.profiling.forecast.activations import FLOAT, PADDED, QUERIES, ROWS, SCORES, SELECTED, WIDE, Shape, elements
from bert_tf.profiling.forecast.step_peak import forecast

LEAST, MOST = 1 << 11, 1 << 15  # tokens: the first suits a CPU; a large GPU is busy with the second
_SURE = 0.5  # of the memory that is left: batches of many sizes follow each other, and products want workspaces
_TRAINED = 4  # copies of the weights that training keeps between steps: gradients are gone, moments and its own are not


def tokens(config: BertConfig, *, length: int, memory: int, number: int = FLOAT, trains: bool = False) -> int:
    """Returns how many tokens, padding included, to compute at a time: from `LEAST` to `MOST`, a power of two.

    Args:
      config: sizes of the model.
      length: of the longest input allowed; shorter ones need less for each token.
      memory: of the GPU for tensors, in bytes.
      number: bytes of an activation.
      trains: whether another session trains the model on the same GPU.
    """
    weights = forecast(config, tokens=1, batch_size=1).weights
    free = (memory - weights * (1 + _TRAINED * trains)) * _SURE
    count = MOST
    while count > LEAST and peak(config, examples=max(1, count // length), length=length, number=number) > free:
        count //= 2
    return count


def peak(config: BertConfig, *, examples: int, length: int, number: int = FLOAT) -> int:
    """Returns the bytes at the peak of a forward pass, beside weights: nothing is kept from one layer to the next.

    Of BERT-Base a trace has 0.56 of it at lengths of 16 to 512, where one operation computes at a time; a GPU is given several.

    Args:
      config: sizes of the model.
      examples: of the batch.
      length: of each, in tokens.
      number: bytes of an activation.
    """
    sizes = elements(Shape(examples, length, examples * length, number), config, selected=None)
    attention = 2 * sizes[ROWS] + 2 * sizes[PADDED] + 2 * sizes[QUERIES] + 2 * sizes[SCORES]
    feed_forward = 3 * sizes[ROWS] + sizes[SELECTED] + 3 * sizes[WIDE]
    return max(attention, feed_forward) * number
