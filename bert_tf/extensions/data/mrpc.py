"""GLUE's split of the Microsoft Research Paraphrase Corpus, made from the published files.

These are a training and a test file. GLUE takes some training pairs as dev, by a list of their ids, and replaces
the labels of the test pairs with numbers.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from bert_tf.errors import DataError
from bert_tf.tasks import names, tables, text_lines

TRAIN_NAME, TEST_NAME, DEV_IDS_NAME = "msr_paraphrase_train.txt", "msr_paraphrase_test.txt", "dev_ids.tsv"

_COLUMNS = ("1", "2", "3", "4", "5")  # label, two ids, two texts
_BOM = "\ufeff"


def split(train: text_lines.Source, test: text_lines.Source, dev_ids: text_lines.Source) -> Mapping[str, str]:
    """Returns the contents of train.tsv, dev.tsv and test.tsv by name, from msr_paraphrase_train.txt and _test.txt.

    `dev_ids` has the two ids of each dev pair. Raises `DataError` if a dev pair is not in the training file.
    """
    lines = tables.open_table(dev_ids, form=names.TSV, header=False).read_rows(
        _COLUMNS[:2], lambda line, ids: (tuple(ids), line)
    )
    line_of = dict(lines)
    header, pairs = _pairs(train)
    test_header, test_pairs = _pairs(test)
    missing = sorted(line_of.keys() - {tuple(pair[1:3]) for pair in pairs}, key=line_of.__getitem__)
    if missing:
        problem = f"{train} lacks {len(missing)} of these pairs, the first is {' and '.join(missing[0])}"
        raise DataError(problem, dev_ids, line_of[missing[0]])
    return {
        "train.tsv": _BOM + _text([header, *(pair for pair in pairs if tuple(pair[1:3]) not in line_of)]),
        "dev.tsv": _BOM + _text([header, *(pair for pair in pairs if tuple(pair[1:3]) in line_of)]),
        "test.tsv": _text([["index", *test_header[1:]], *([str(n), *pair[1:]] for n, pair in enumerate(test_pairs))]),
    }


def _pairs(path: text_lines.Source) -> tuple[Sequence[str], list[list[str]]]:
    table = tables.open_table(path, form=names.TSV)
    return table.names, list(table.read_rows(_COLUMNS, lambda _, cells: cells))


def _text(rows: Iterable[Sequence[str]]) -> str:
    return "".join("\t".join(row) + "\n" for row in rows)
