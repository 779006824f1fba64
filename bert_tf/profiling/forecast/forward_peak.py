"""Largest number of tokens per inference batch that fits into a GPU's memory. Imports no TensorFlow."""

from __future__ import annotations

from bert_tf.config import BertConfig
from bert_tf.profiling.forecast.activations import FLOAT, PADDED, QUERIES, ROWS, SCORES, SELECTED, WIDE, Shape, elements
from bert_tf.profiling.forecast.step_peak import forecast

LEAST, MOST = 1 << 11, 1 << 15  # tokens: the first suits a CPU; a large GPU is busy with the second
_SURE = 0.5  # of the memory that is left: batches of many sizes follow each other, and products want workspaces
_TRAINED = 4  # copies of the weights that training keeps between steps: gradients are gone, moments and its own are not


def tokens(config: BertConfig, *, length: int, memory: int, number: int = FLOAT, trains: bool = False) -> int:
    """Returns tokens per batch, including padding: a power of two from `LEAST` to `MOST`.

    `length` is that of the longest input, `memory` the GPU's bytes for tensors, `number` the bytes of an activation;
    with `trains`, another session trains the model on the same GPU.
    """
    weights = forecast(config, tokens=1, batch_size=1).weights
    free = (memory - weights * (1 + _TRAINED * trains)) * _SURE
    count = MOST
    while count > LEAST and peak(config, examples=max(1, count // length), length=length, number=number) > free:
        count //= 2
    return count


def peak(config: BertConfig, *, examples: int, length: int, number: int = FLOAT) -> int:
    """Peak bytes of a forward pass without weights; layers keep nothing. `number` is bytes per activation.

    A trace of BERT-Base at lengths 16 to 512 takes 0.56 of it with one operation at a time; a GPU runs several.
    """
    sizes = elements(Shape(examples, length, examples * length, number), config, selected=None)
    attention = 2 * sizes[ROWS] + 2 * sizes[PADDED] + 2 * sizes[QUERIES] + 2 * sizes[SCORES]
    feed_forward = 3 * sizes[ROWS] + sizes[SELECTED] + 3 * sizes[WIDE]
    return max(attention, feed_forward) * number
