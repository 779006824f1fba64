"""Masked words against the fill-mask pipeline of `transformers`; for its environment see test_transformers_oracle.py.

The encoder and the words are those of the default checkpoint; the head, which it lacks, is drawn.
"""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import numpy as np
import pytest

from bert_tf import documents
from bert_tf.batch import trained
from bert_tf.batch.job import Given
from bert_tf.checkpoints import default, huggingface_classes, huggingface_export, names
from bert_tf.checkpoints.reader import CheckpointReader
from bert_tf.export.huggingface import tokenizer
from bert_tf.head_spec import PRETRAINING
from bert_tf.library.filling import WordFiller
from tests.batch.runs import inference

pytestmark = pytest.mark.slow

CHECKPOINTS = Path(__file__).resolve().parents[2] / "checkpoints"
TOP = 5
TEXTS = (
    "Paris is the [MASK] of France.",
    "The old man walked [MASK] the river.",
    "[MASK] is the largest planet.",
    "She put the bread into the [MASK]",
    "He [MASK] the door and went [MASK].",
    "It rained all [MASK], so we stayed at [MASK].",
    "The [MASK] barked at the [MASK] of the house.",
    "Two and two are [MASK].",
    "Water boils at one hundred [MASK].",
    "My [MASK] lives in a small village near the sea.",
    "The train to the [MASK] leaves at noon.",
    "I have never [MASK] such a thing before!",
    "What is your [MASK]?",
    "They were [MASK]: nobody had told them.",
    "In the [MASK], leaves turn red.",
    "The doctor gave her some [MASK] for the pain.",
    "Un[MASK]able",
    "The word play[MASK] has two parts.",
    "[MASK][MASK] are two places side by side.",
    "(the [MASK])",
    '"Go [MASK]," she said.',
    "A cat, a dog and a [MASK].",
    "THE KING OF [MASK] WAS OLD.",
    "Café [MASK] à la carte",
    "The price was $[MASK] in 2019.",
    "3 [MASK] 4 = 12",
    "He speaks [MASK], French and Italian.",
    "The bridge was [MASK] in 1890 and [MASK] in 1944.",
    "This book was written by a famous [MASK].",
    "We drank [MASK] from small cups.",
    "The moon goes around the [MASK].",
    "The farmer keeps [MASK] and [MASK] and a few hens.",
    "After the war, the [MASK] was rebuilt.",
    "It is too [MASK] to swim.",
    "The teacher asked the [MASK] a question.",
    "Nobody knows where the [MASK] is buried.",
    "Snow fell on the [MASK] during the night.",
    "You should [MASK] more often.",
    "The ship sank [MASK] the coast of Norway.",
    "Her hair was as black as [MASK].",
    "Wood burns, but [MASK] does not.",
    "The judge found him not [MASK].",
    "An apple a day keeps the [MASK] away.",
    "One [MASK] later, the letter arrived.",
    "The violin is a [MASK] instrument.",
    "I would rather [MASK] than sing.",
    "北京 is the [MASK] of China.",
    "Tom's [MASK] isn't here; it's over there.",
    "e-mail: [MASK]@example.com",
    "The end of the [MASK] is near. [MASK] has come.",
)


@pytest.fixture(scope="module", name="filled")
def fixture_filled(tmp_path_factory):
    """Ours and theirs: of each text its places, of each the ids and probabilities of the best words."""
    python = os.environ.get("BERT_TF_PEERS_PYTHON")
    if not python:
        pytest.fail("set BERT_TF_PEERS_PYTHON to the Python of a virtual environment with benchmarks/peers/transformers.txt")
    folder = tmp_path_factory.mktemp("masked")
    write_folder(folder)
    (folder / "texts.json").write_text(json.dumps(TEXTS))
    script = Path(__file__).with_name("transformers_fill.py")
    subprocess.run([python, script, folder, str(TOP)], check=True, timeout=600, stdout=subprocess.DEVNULL)
    theirs = json.loads((folder / "filled.json").read_text())

    home = pytest.MonkeyPatch()
    home.setenv("BERT_TF_HOME", str(tmp_path_factory.mktemp("home")))
    from bert_tf.jobs import fill_mask

    model = fill_mask.find(folder, Given(), environment=os.environ)
    home.undo()
    id_of = {token: number for number, token in enumerate(model.vocabulary.tokens)}
    with WordFiller(model, inference()) as filler:
        found = filler.fill_mask(TEXTS, top=TOP)
    ours = [[[(id_of[word.piece], word.probability) for word in place.words] for place in places] for places in found]
    return ours, theirs


def write_folder(folder: Path) -> None:
    """Writes what transformers loads: the default checkpoint with a head of masked words."""
    published = default.ensure(CHECKPOINTS)
    model = trained.load_encoder(str(published / "bert_model.ckpt"), Given())
    reader = CheckpointReader(model.prefix)
    weights = {name: reader[name] for name in names.encoder_shapes(model.config)}
    random = np.random.default_rng(1)
    for name, shape in names.pretraining_shapes(model.config).items():
        center, spread = (3.0, 0.5) if name.endswith("gamma") else (0.0, 0.1)
        weights[name] = random.normal(center, spread, shape).astype(np.float32)
    huggingface_export.write(folder, weights, model.config, architecture=huggingface_classes.of(PRETRAINING))
    for name, content in tokenizer.files(model).items():
        (folder / name).write_text(documents.to_json(content) + "\n", encoding="utf-8")
    (folder / "vocab.txt").write_text(model.vocabulary.to_text(), encoding="utf-8")


def test_the_words_are_those_of_the_pipeline(filled):
    ours, theirs = filled
    assert [[[number for number, _ in place] for place in places] for places in ours] == [
        [[number for number, _ in place] for place in places] for places in theirs
    ]


def test_so_are_their_probabilities(filled):
    for ours, theirs in zip(*filled):
        np.testing.assert_allclose(
            [[probability for _, probability in place] for place in ours],
            [[probability for _, probability in place] for place in theirs],
            rtol=0,
            atol=1e-5,
        )


def test_words_are_told_apart(filled):
    """Else any order would be that of the pipeline."""
    best = np.array([[probability for _, probability in place] for places in filled[0] for place in places])
    assert np.median(best[:, 0]) > 0.01
    assert (best[:, 0] - best[:, 1]).min() > 0
