from __future__ import annotations

import pytest

from bert_tf.errors import BertError
from bert_tf.tasks.registry import folder_name, get_task
from bert_tf.tasks.settings import of_values
from bert_tf.tasks.similarity.family import BELONG


def task(problem, **settings):
    return get_task("custom", of_values({"problem": problem, **{name: str(value) for name, value in settings.items()}}))


def written(folder, text, name="a.csv"):
    path = folder / name
    path.write_text(text)
    return path


def test_pairs_have_scores(tmp_path):
    path = written(tmp_path, "text_a,text_b,label\nHe left.,He went.,4.5\n")
    scored = get_task("custom", of_values({"problem": "similarity", "train_file": str(path), "highest_score": 5.0}))
    (example,) = scored.examples("", "train")
    assert (example.texts, example.label) == (("He left.", "He went."), 4.5)
    assert scored.family.highest_score == 5.0


def test_pairs_that_belong_together_need_none(tmp_path):
    path = written(tmp_path, "text_a,text_b\nHe left.,He went.\n")
    assert [example.label for example in task("contrastive", train_file=path).examples("", "train")] == [BELONG]


@pytest.mark.parametrize(
    ("header", "label", "metric"), [("text_a,text_b,label", ",0.5", "spearman"), ("text_a,text_b", "", "mrr")]
)
def test_the_file_of_dev_decides_on_the_metrics(tmp_path, header, label, metric):
    made = task("contrastive", dev_file=written(tmp_path, f"{header}\na,b{label}\n"))
    assert made.family.metrics[0] == metric
    assert made.examples("", "dev")[0].label == (0.5 if label else BELONG)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("text_a,text_b,label\na,b,7\n", "a.csv:2: the label 7 is outside 0 to 1"),
        ("text_a,text_b,label\na,b,x\n", "a.csv:2: the label 'x' is not a number"),
        ("text_a,text_b,label\na,,1\n", "a.csv:2: the text in column 'text_b' is empty"),
        ("text,label\na,1\n", "a.csv: one text, where pairs are compared: name the second with --text_b"),
    ],
)
def test_what_cannot_be_read_is_one_line(tmp_path, text, message):
    with pytest.raises(BertError) as caught:
        task("similarity", train_file=written(tmp_path, text)).examples("", "train")
    assert message in str(caught.value)


def test_sts_b_is_read_from_its_own_folder(tmp_path):
    (tmp_path / "train.tsv").write_text("index\tsentence1\tsentence2\tscore\n0\tHe left.\tHe went.\t4.2\n")
    sts = get_task("sts-b-vectors")
    assert folder_name(sts.name) == "STS-B"
    assert sts.examples(tmp_path, "train")[0].label == 4.2
    assert (sts.family.highest_score, sts.submission("test")) == (5.0, None)
