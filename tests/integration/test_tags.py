"""Tags are trained, evaluated and predicted as classes are: stopped, in parts, on replicas, in batch jobs."""

import json

import pytest

import bert_tf
from tests import classifier
from tests.integration import families
from tests.training import reading

pytestmark = pytest.mark.versions

STEPS = 60
TAGS = {"weather": "PER", "food": "LOC"}


def in_iob1(tags):
    """Each word of a kind is an entity of its own."""
    pairs = zip(["other", *tags], tags)
    return ["O" if tag == "other" else f"{'B' if before == tag else 'I'}-{TAGS[tag]}" for before, tag in pairs]


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    """The files of CoNLL-2003, of which the names of persons are words of weather."""
    folder = tmp_path_factory.mktemp("conll")
    for name, rows in zip(("eng.train", "eng.testa", "eng.testb"), families.tagged_texts().values()):
        sentences = ["".join(f"{word} X {tag}\n" for word, tag in zip(words, in_iob1(tags))) for words, tags in rows]
        (folder / name).write_text("-DOCSTART- X O\n\n" + "\n".join(sentences))
    return folder


@pytest.fixture(scope="module")
def flags(project, data):
    def flags(folder, **extra):
        settings = {"task_name": "conll2003", "data_dir": data, "num_train_steps": STEPS, "do_train": True}
        return project.flags(folder, **{**settings, "learning_rate": 0.005, "log_every_n_steps": 1, **extra})

    return flags


@pytest.fixture(scope="module")
def trained(tmp_path_factory, flags):
    """The folder of a run that did everything in one command."""
    folder = tmp_path_factory.mktemp("trained") / "out"
    assert classifier.run(*flags(folder, do_eval=True, do_predict=True)) == 0
    return folder


def test_it_learns_and_its_predictions_are_the_input_with_one_more_column(trained, data):
    results = reading.results(trained)
    assert results["eval_entity_f1"] > 0.9
    assert results["splits"]["dev"]["decoding"]["constrained"]["illegal_tags"] == 0
    page = (trained / "report.html").read_text(encoding="utf-8")
    assert all(text in page for text in ("Errors by kind", "wrong border", "By length of sentence", "Decoding"))
    lines = (trained / "predictions.conll").read_text().splitlines()
    given = (data / "eng.testb").read_text().splitlines()
    assert [line if line in given[:2] or not line else line.rpartition(" ")[0] for line in lines] == given


def test_batch_jobs_reach_and_predict_the_same(tmp_path, trained, data):
    table = bert_tf.evaluate(trained, task_name="CoNLL2003", data_dir=data, output_dir=tmp_path / "table")
    results = reading.results(trained)
    assert not table.failed
    assert table.rows[0].metrics["entity_f1"] == pytest.approx(results["eval_entity_f1"])
    assert (table.rows[0].loss, table.rows[0].step) == (results["eval_loss"], results["global_step"])
    for name, rules in (("tags.tsv", {}), ("tags.jsonl", {"constrained_decoding": True})):
        bert_tf.predict_files(checkpoint=trained, input=data / "eng.testb", output=tmp_path / name, **rules)
    assert (tmp_path / "tags.tsv").read_text() == (trained / "predictions.conll").read_text()
    for line in (tmp_path / "tags.jsonl").read_text().splitlines():
        tags = ["O", *json.loads(line)["tags"]]
        assert all(tag[0] != "I" or before[1:] == tag[1:] for before, tag in zip(tags, tags[1:]))


def test_a_program_predicts_texts_and_words(trained):
    with bert_tf.load(trained) as model:
        of_text, of_words, of_nothing = model.predict(["the rain,soup", ["the", "storm"], ""])
        assert [(entity.type, entity.text, entity.start, entity.end) for entity in of_text.entities] == [
            ("PER", "rain", 4, 8),
            ("LOC", "soup", 9, 13),
        ]
        assert of_words.label == ("O", "B-PER")
        assert of_nothing.entities == ()
        assert model.evaluate([(["the", "storm"], ["O", "I-PER"])]).metrics["entity_f1"] == 1.0
