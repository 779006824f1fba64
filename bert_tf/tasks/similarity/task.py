"""STS-B for sentence embeddings, and custom pairs."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Iterator

from bert_tf.errors import DataError
from bert_tf.head_spec import REGRESSION
from bert_tf.tasks import glue, tables, text_lines
from bert_tf.tasks.base import DEV, TEST, Submission
from bert_tf.tasks.custom import CustomTask
from bert_tf.tasks.glue import SIMILARITIES, GlueTask
from bert_tf.tasks.label_column import LabelColumn
from bert_tf.tasks.sentence.example import SentenceExample
from bert_tf.tasks.settings import TaskSettings
from bert_tf.tasks.similarity.family import BELONG, ContrastiveFamily, SimilarityFamily

STS_B = "STS-B-vectors"


class StsTask(GlueTask):
    """STS-B files for sentence embeddings."""

    @property
    def family(self) -> SimilarityFamily:  # type: ignore[override]
        return SimilarityFamily(SIMILARITIES[1])

    def submission(self, split: str) -> Submission | None:
        """None: GLUE's server takes predictions of the task STS-B, not of this one."""
        del split
        return None


def sts_b() -> StsTask:
    """STS-B (Cer et al., 2017) for sentence embeddings."""
    row = glue.TASKS["STS-B"]
    return StsTask(
        **{**{field.name: getattr(row, field.name) for field in dataclasses.fields(row)}, "name": STS_B, "metrics": ()}
    )


class PairsTask(CustomTask):
    """Custom pairs with scores."""

    def __init__(self, settings: TaskSettings) -> None:
        super().__init__(dataclasses.replace(settings.custom, problem=REGRESSION))
        self._pairs = settings.similarity
        bounds = (0.0, self._pairs.highest_score)
        self._label_column = LabelColumn(settings.custom.label_column, REGRESSION, settings.custom.label_separator, bounds)

    @functools.cached_property
    def family(self) -> SimilarityFamily:  # type: ignore[override]
        return SimilarityFamily(self._pairs.highest_score)

    def _texts(self, table: tables.Table) -> list[list[str]]:
        texts = super()._texts(table)
        if len(texts) < 2:
            raise DataError("one text, where pairs are compared: name the second with --text_b", table.path)
        return texts


class ContrastiveTask(PairsTask):
    """Custom matching pairs; dev pairs may have scores."""

    @functools.cached_property
    def family(self) -> ContrastiveFamily:  # type: ignore[override]
        """Reads the header of the dev file, if any, to find out whether it has scores; raises `DataError`."""
        dev = self._files[DEV]
        scored = bool(dev) and self._is_labelled(self._table(dev or ""), DEV)
        return ContrastiveFamily(self._pairs.highest_score, self._pairs.temperature, scored)

    def _is_labelled(self, table: tables.Table, split: str) -> bool:
        return split == DEV and table.has(self._settings.label_column)

    def _numbered(self, source: text_lines.Source, split: str, report: tables.Report) -> Iterator[tuple[int, SentenceExample]]:
        for line, example in super()._numbered(source, split, report):
            is_scored = split == TEST or example.label is not None
            yield line, example if is_scored else dataclasses.replace(example, label=BELONG)
