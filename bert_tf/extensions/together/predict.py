"""Predicts with several models, whose equal layers are computed once."""

from __future__ import annotations

import dataclasses
import functools
import os
from pathlib import Path

from bert_tf.batch import stream
from bert_tf.batch.file_pairs import FilePair
from bert_tf.batch.model_names import names_of
from bert_tf.batch.session import Predictor
from bert_tf.checkpoints import model_formats
from bert_tf.checkpoints.prefixes import several
from bert_tf.errors import FlagError
from bert_tf.extensions.together import engine
from bert_tf.io.files import PIPE
from bert_tf.operations.predict import PredictSettings, determining, opened, writing
from bert_tf.training import batch_machine
from bert_tf.training.settings import TENSORFLOW


def predict(settings: PredictSettings) -> list[FilePair]:
    """Predicts the files with each model of `settings.checkpoint`."""
    of_models = _of_models(settings)
    with writing([pair for one in of_models for pair in one.files]):
        every = [(one, *opened(one)) for one in of_models]
        models = [of_file[0] for _, of_file, _ in every]
        prefixes = [model.prefix for model in models]
        inference = batch_machine.inference(
            settings.machine, settings.predict_batch_size, environment=os.environ, checkpoints=prefixes
        )
        pairs: list[FilePair] = []
        with engine.shared(models, inference) as together:
            for (one, of_file, reads), model in zip(every, models):
                decisive = determining(one, inference, of_file, reads)
                predictor = Predictor(model, reads.family, together)
                predictor.load_weights()
                predict_one = functools.partial(stream.predict, inputs=reads, predictor=predictor, settings=decisive)
                pairs += stream.predict_each(one.files, predict_one, skip_empty=one.skip_bad_rows)
        return pairs


def _of_models(settings: PredictSettings) -> list[PredictSettings]:
    """The settings of each model, with outputs of its own; FlagError if two have one name."""
    names = several(settings.checkpoint)
    if settings.average_outputs:
        raise FlagError("--average_outputs: takes a pattern, not several models, such as --checkpoint='RUN/fold-*'")
    if settings.machine.engine != TENSORFLOW and model_formats.file_of(names[0]) is None:
        raise FlagError(f"--engine={settings.machine.engine}: several checkpoints are computed by TensorFlow; leave it out")
    if any(PIPE in (pair.input, pair.output) for pair in settings.files):
        raise FlagError(f"--checkpoint: several models read and write files, no pipe; name files, or one model, as {names[0]}")
    folders = names_of(names, "and their predictions would be one file")
    return [
        dataclasses.replace(settings, checkpoint=name, files=tuple(_of_model(pair, folder) for pair in settings.files))
        for name, folder in zip(names, folders)
    ]


def _of_model(pair: FilePair, name: str) -> FilePair:
    """The pair of one of several models, whose name is in that of the output: predictions-NAME.tsv."""
    path = Path(pair.output)
    stem, dot, suffixes = path.name.partition(".")
    return dataclasses.replace(pair, output=str(path.with_name(f"{stem}-{name}{dot}{suffixes}")))
