"""XNLI (Conneau et al., 2018): MNLI's problem in other languages, in the published layout.

    XNLI-1.0/xnli.dev.tsv, xnli.test.tsv                    each row names its language
    XNLI-MT-1.0/multinli/multinli.train.<language>.tsv      MNLI's training split, machine-translated

or, as the published script opens it, without the archives' folders: xnli.dev.tsv,
multinli/multinli.train.<language>.tsv.
"""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Iterator
from pathlib import Path
from typing import ClassVar

from bert_tf.errors import DataError
from bert_tf.tasks import cells, names, tables, text_lines
from bert_tf.tasks.base import TEST, TRAIN, Splits
from bert_tf.tasks.glue import NLI_LABELS
from bert_tf.tasks.sentence.family import SentenceFamily
from bert_tf.tasks.sentence.rows import SentenceExample

FOLDER, TRAIN_FOLDER = "XNLI-1.0", "XNLI-MT-1.0"  # in the archives

_COLUMNS = ("sentence1", "sentence2", "gold_label", "language")
_TRAIN_COLUMNS = ("premise", "hypo", "label")
_TRAIN_NAME = ("multinli.train.", ".tsv")  # before and after the language
_SPELLINGS = {"contradictory": "contradiction"}  # of the training files
_ANY_LANGUAGE = f"{TEST}_"  # split of a file to predict, see `_parts`


@dataclasses.dataclass(frozen=True)
class XnliTask(Splits):
    """XNLI in one language, or in all languages of the files.

    Splits of one language are train, dev and test. All languages are trained on together and evaluated separately:
    train, and dev_en, dev_sw and so on.
    """

    language: str | None = None  # code in the files; None for all
    skip_bad_rows: bool = False

    reads_folder: ClassVar[bool] = True

    @property
    def name(self) -> str:
        return f"XNLI-{self.language}" if self.language else "XNLI"

    @property
    def family(self) -> SentenceFamily:
        return SentenceFamily(NLI_LABELS, texts=2)

    def splits(self, data_dir: str | os.PathLike[str], purpose: str) -> tuple[str, ...]:
        """Returns the purpose itself, or one split per language of the file; errors in a file are left to its reader.

        A file that is named has all of its rows predicted, and is evaluated as a whole.
        """
        if not data_dir and purpose == TEST:
            return (_ANY_LANGUAGE,)
        if self.language or purpose == TRAIN or not data_dir:
            return (purpose,)
        try:
            return tuple(f"{purpose}_{language}" for language in _languages(self.file(data_dir, purpose)))
        except DataError:
            return (purpose,)

    def file(self, data_dir: str | os.PathLike[str], split: str) -> Path:
        """Returns the file in the folder that contains XNLI-1.0, in XNLI-1.0 itself, or in the folder of all files.

        For training on all languages, returns the folder of their files.
        """
        purpose, language = self._parts(split)
        folder = Path(data_dir)
        if folder.absolute().name == FOLDER:
            folder = folder.absolute().parent
        if purpose != TRAIN:
            return _unpacked(folder, FOLDER, Path(f"xnli.{purpose}.tsv"))
        translation = Path("multinli") / language.join(_TRAIN_NAME) if language else Path("multinli")
        return _unpacked(folder, TRAIN_FOLDER, translation)

    def examples(self, data_dir: str | os.PathLike[str], split: str) -> list[SentenceExample]:
        """Reads a split; labels of the test file are ignored."""
        path = self.file(data_dir, split)
        parts = [split] if path.suffix else [f"{split}_{language}" for language in _translated(path)]
        examples = tables.usable(
            lambda report: (example for part in parts for example in self.stream(self.file(data_dir, part), part, report)),
            path,
            skip=self.skip_bad_rows,
        )
        if not examples:
            purpose, language = self._parts(split)
            there = "" if purpose == TRAIN else f" of language {language!r}; it has {', '.join(_languages(path))}"
            raise DataError(f"no examples{there}", path)
        return examples

    def stream(self, source: text_lines.Source, split: str, report: tables.Report = tables.refuse) -> Iterator[SentenceExample]:
        """Skips rows of other languages."""
        purpose, language = self._parts(split)
        columns = _TRAIN_COLUMNS if purpose == TRAIN else _COLUMNS
        name = split.rstrip("_")

        def example(line: int, row: list[str]) -> SentenceExample | None:
            if language and row[3:] not in ([], [language]):
                return None
            first, second = (cells.text(cell, column) for cell, column in zip(row[:2], columns))
            label = None if purpose == TEST else cells.known_label(_SPELLINGS.get(row[2], row[2]), NLI_LABELS)
            return SentenceExample(f"{name}-{line - 1}", first, second, label)

        return filter(None, tables.open_table(source, form=names.TSV).read_rows(columns, example, report))

    def _parts(self, split: str) -> tuple[str, str | None]:
        """Returns purpose and language from "dev_en", or from "dev" and the task; of "test_" None, for any."""
        purpose, divider, language = split.partition("_")
        return purpose, (language or None) if divider else self.language


def _unpacked(folder: Path, archive: str, path: Path) -> Path:
    """Returns a path inside its archive's folder, unless it exists only without that folder."""
    inside, flat = folder / archive / path, folder / path
    return flat if flat.exists() and not inside.exists() else inside


def _languages(path: Path) -> list[str]:
    column = tables.open_table(path, form=names.TSV).read_rows(["language"], lambda _, row: str(row[0]), report=lambda _: None)
    return sorted(set(column))


def _translated(folder: Path) -> list[str]:
    before, after = _TRAIN_NAME
    languages = [path.name.removeprefix(before).removesuffix(after) for path in sorted(folder.glob(f"{before}*{after}"))]
    if not languages:
        raise DataError(f"no {before}LANGUAGE{after} in this folder", folder)
    return languages
