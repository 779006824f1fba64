"""Masked words against the fill-mask pipeline of `transformers`; for its environment see peers.py.

The encoder and the words are those of the default checkpoint; the head, which it lacks, is drawn.
"""

import dataclasses
import json
import shutil
from pathlib import Path

import numpy as np
import pytest

import bert_tf
from bert_tf.checkpoints import default, names, reader
from bert_tf.config import BertConfig
from bert_tf.extensions.export import huggingface
from bert_tf.extensions.export.formats import ExportOptions
from bert_tf.extensions.export.job import ExportJob
from bert_tf.extensions.fill_mask.filler import WordFiller
from bert_tf.tasks import families
from bert_tf.tasks.rows_task import RowsTask
from tests.batch.runs import inference
from tests.conformance import peers

pytestmark = pytest.mark.slow

TOP = 5
OURS = ("checkpoint", "exported")
TEXTS = (
    *("Paris is the [MASK] of France.", "The old man walked [MASK] the river.", "[MASK] is the largest planet."),
    *("She put the bread into the [MASK]", "The [MASK] barked at the [MASK] of the house."),
    *("Water boils at one hundred [MASK].", "I have never [MASK] such a thing before!", "What is your [MASK]?"),
    *("They were [MASK]: nobody had told them.", "Un[MASK]able", "The word play[MASK] has two parts."),
    *("[MASK][MASK] are two places side by side.", "(the [MASK])", '"Go [MASK]," she said.'),
    *("A cat, a dog and a [MASK].", "THE KING OF [MASK] WAS OLD.", "Café [MASK] à la carte"),
    *("The price was $[MASK] in 2019.", "3 [MASK] 4 = 12", "The bridge was [MASK] in 1890 and [MASK] in 1944."),
    *("The farmer keeps [MASK] and [MASK] and a few hens.", "Wood burns, but [MASK] does not."),
    *("One [MASK] later, the letter arrived.", "北京 is the [MASK] of China.", "Tom's [MASK] isn't here; it's over there."),
    *("e-mail: [MASK]@example.com", "The end of the [MASK] is near. [MASK] has come."),
)


@pytest.fixture(scope="module", name="filled")
def fixture_filled(tmp_path_factory):
    """Of each text its places, of each the ids and probabilities of the best words, by who says them."""
    folder = tmp_path_factory.mktemp("masked")
    checkpoint, exported = write_checkpoint(folder / "checkpoint"), folder / "exported"
    exported.mkdir()
    huggingface.write(as_exported(checkpoint), exported)
    (exported / "texts.json").write_text(json.dumps(TEXTS))
    peers.run("transformers_fill.py", exported, TOP)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("BERT_TF_HOME", str(folder / "home"))
        ours = {name: filled(bert_tf.word_filler(folder / name).trained) for name in OURS}
    return {**ours, "transformers": json.loads((exported / "filled.json").read_text())}


def filled(model):
    """Returns ids and probabilities of the best words of each place of each text."""
    id_of = {token: number for number, token in enumerate(model.vocabulary.tokens)}
    with WordFiller(model, inference()) as filler:
        by_text = filler.fill_mask(TEXTS, top=TOP)
    return [[[(id_of[word.piece], word.probability) for word in place.words] for place in places] for places in by_text]


def write_checkpoint(folder: Path) -> Path:
    """Writes the default checkpoint with a head, in the published layout; returns the folder."""
    published = default.ensure(peers.CHECKPOINTS)
    shutil.copytree(published, folder, ignore=shutil.ignore_patterns("bert_model.ckpt*"))
    config = BertConfig.from_json_file(published / "bert_config.json")
    encoder = reader.CheckpointReader(published / "bert_model.ckpt")
    weights = {name: encoder[name] for name in names.encoder_shapes(config)}
    random = np.random.default_rng(1)
    for name, shape in names.pretraining_shapes(config).items():
        center, spread = (3.0, 0.5) if name.endswith("gamma") else (0.0, 0.1)
        weights[name] = random.normal(center, spread, shape).astype(np.float32)
    reader.write_checkpoint(folder / "bert_model.ckpt", weights)
    return folder


def as_exported(checkpoint: Path) -> ExportJob:
    """Returns the model of a checkpoint, as a run of pre-training is exported."""
    task = RowsTask(families.of_record({"kind": "pretraining", "nsp": True, "sampled_softmax": 0}))
    model = bert_tf.word_filler(checkpoint).trained
    return ExportJob(dataclasses.replace(model, given_head=task.family.head), task, 0, ExportOptions())


@pytest.mark.parametrize("ours", OURS)
def test_the_words_are_those_of_the_pipeline(filled, ours):
    assert _column(filled[ours], 0) == _column(filled["transformers"], 0)


@pytest.mark.parametrize("ours", OURS)
def test_so_are_their_probabilities(filled, ours):
    actual, expected = (np.array(_column(filled[name], 1)) for name in (ours, "transformers"))
    np.testing.assert_allclose(actual, expected, rtol=0, atol=1e-5)


def test_words_are_told_apart(filled):
    """Else any order would be that of the pipeline."""
    best = np.array(_column(filled["checkpoint"], 1))
    assert np.median(best[:, 0]) > 0.01
    assert (best[:, 0] - best[:, 1]).min() > 0


def _column(by_text, number):
    """Returns ids or probabilities, [places, TOP]."""
    return [[word[number] for word in place] for places in by_text for place in places]
