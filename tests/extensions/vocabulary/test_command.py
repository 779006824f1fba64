"""The vocabulary command as people type it."""

import dataclasses
import functools
import gzip
import io
import json
import os
import string
import sys

import numpy as np
import pytest

import bert_tf
from bert_tf.batch import loading
from bert_tf.batch.job import ModelOverrides
from bert_tf.checkpoints.reader import write_checkpoint
from bert_tf.config import BertConfig
from bert_tf.errors import DataError
from bert_tf.extensions.vectors.text_encoder import Encoder
from bert_tf.extensions.vocabulary import make
from bert_tf.io import lock
from bert_tf.tokenization.vocabulary import Vocabulary
from tests import huggingface
from tests.batch.runs import decide, inference, write_run
from tests.tiny import held, random_weights, write_project

TOKENS = [
    *("[PAD]", "[unused0]", "[unused1]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "rain", "the", "fell", "."),
    *string.ascii_lowercase,
    *(f"##{c}" for c in string.ascii_lowercase),
]
TEXT = "The storm fell. The storm fell.\nThe thunder and the storm.\n\nRain, Über-rain.\n"
TABLE, BIAS = "bert/embeddings/word_embeddings", "cls/predictions/output_bias"


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    """A pre-trained model of letters, with moments; not to be changed."""
    folder = tmp_path_factory.mktemp("model")
    config = dataclasses.replace(BertConfig.tiny(vocab_size=len(TOKENS)), num_hidden_layers=1)
    weights = random_weights(config)
    moments = {f"{TABLE}/adam_m": weights[TABLE], "global_step": np.array(7, np.int64)}
    bias = np.linspace(-1, 1, len(TOKENS), dtype=np.float32)
    write_checkpoint(folder / "bert_model.ckpt", {**weights, **moments, BIAS: bias})
    (folder / "bert_config.json").write_text(config.to_json())
    (folder / "vocab.txt").write_text("\n".join(TOKENS) + "\n")
    return folder


@pytest.fixture
def corpus(tmp_path):
    path = tmp_path / "corpus.txt"
    path.write_text(TEXT, encoding="utf-8")
    return path


@pytest.fixture
def call(called):
    return functools.partial(called, "vocabulary")


@pytest.fixture
def extended(model, corpus, tmp_path):
    """Returns what a model becomes with words of the corpus."""

    def extended(top=3, checkpoint=model, min_frequency=1, **settings):
        chosen = {"corpus": corpus, "top": top, "min_frequency": min_frequency, **settings}
        return bert_tf.extend_vocabulary(checkpoint, output=tmp_path / "out", **chosen)

    return extended


def test_a_vocabulary_of_a_corpus_fits_it(corpus, tmp_path, call):
    output = tmp_path / "vocab.txt"
    status, out, _ = call("make", corpus, "--size=60", "--unused=3", f"--output={output}")
    assert status == 0
    made = Vocabulary.from_file(output)
    assert made.tokens[:8] == ("[PAD]", "[unused0]", "[unused1]", "[unused2]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")
    assert {"the", "storm", "fell"} < set(made.tokens)
    assert "characters that are too rare, whose words become [UNK]: " in out
    assert "corpus     20" in out
    _, shown, _ = call("show", output, f"--text={corpus}")
    assert shown.splitlines()[-1].split()[1:] == out.splitlines()[-1].split()[1:]


def test_files_patterns_compressed_ones_and_a_pipe_are_one_corpus(corpus, tmp_path, call, monkeypatch):
    first, second = TEXT.split("\n\n")
    (tmp_path / "a.txt").write_text(first, encoding="utf-8")
    (tmp_path / "b.txt.gz").write_bytes(gzip.compress(second.encode()))
    whole = bert_tf.make_vocabulary(corpus, size=60, output=tmp_path / "new" / "folder" / "whole")
    assert whole.output.read_text(encoding="utf-8") == whole.vocabulary.to_text()
    parts = bert_tf.make_vocabulary([tmp_path / "[ab].txt*"], size=60, output=tmp_path / "parts")
    assert whole.vocabulary.fingerprint == parts.vocabulary.fingerprint
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BufferedReader(io.BytesIO(TEXT.encode()))))
    assert call("make", "-", "--size=60", f"--output={tmp_path / 'piped'}")[0] == 0
    assert (tmp_path / "piped").read_bytes() == whole.output.read_bytes()
    monkeypatch.setattr(lock, "writing_file", None)  # a device has no lock beside it
    assert call("make", corpus, "--size=60", "--output=/dev/null")[0] == 0


def test_a_vocabulary_goes_to_standard_output(corpus, capfd):
    made = bert_tf.make_vocabulary(corpus, size=60, output="-")
    assert capfd.readouterr().out == made.vocabulary.to_text()


def test_a_vocabulary_that_another_command_writes_meanwhile_is_kept(corpus, tmp_path, call, monkeypatch):
    train, output = make.train, tmp_path / "vocab.txt"
    monkeypatch.setattr(make, "train", lambda *given, **named: (output.write_text("other"), train(*given, **named))[1])
    status, _, err = call("make", corpus, "--size=60", f"--output={output}")
    assert (status, err[-1]) == (2, f"error: {output}: already exists; name another --output, or add --overwrite")
    assert output.read_text() == "other"


def test_show_says_what_is_in_a_vocabulary_and_the_form_of_the_text_decides_what_a_sentence_is(model, call, tmp_path):
    status, out, _ = call("show", model)
    assert status == 0
    assert out.splitlines()[:4] == [
        "63 pieces, 26 of them within words (##)",
        "special: [PAD] 0, [UNK] 3, [CLS] 4, [SEP] 5, [MASK] 6",
        "unused rows: 2, 1 to 2",
        "longest: [unused0]",
    ]
    assert f"sha256 of the pieces {Vocabulary(TOKENS).fingerprint}" in out
    (tmp_path / "rows.jsonl").write_text('{"body": ["The storm fell.", "Rain."]}\n')
    fertility = bert_tf.show_vocabulary(model, text=tmp_path / "rows.jsonl", text_key="body").fertility
    assert (fertility.texts, fertility.words) == (2, 6)


def test_new_words_take_unused_rows_and_then_new_ones_and_leave_vectors_of_other_texts(extended, model, tmp_path):
    done = extended()
    assert [(new.word, new.saved) for new in done.words] == [("storm", 12), ("thunder", 6), ("uber", 3)]
    assert done.rows == (1, 2, len(TOKENS))
    assert done.size == (len(TOKENS), len(TOKENS) + 1)
    assert (tmp_path / "out" / "added_words.tsv").read_text(encoding="utf-8").splitlines()[:3] == [
        "row\tword\tpieces\ttimes\tsaved",
        "1\tstorm\ts ##t ##o ##r ##m\t3\t12",
        "2\tthunder\tt ##h ##u ##n ##d ##e ##r\t1\t6",
    ]
    before, after = held(model / "bert_model.ckpt"), held(tmp_path / "out" / "bert_model.ckpt")
    assert after.keys() == before.keys() - {f"{TABLE}/adam_m", "global_step"}  # without what only training needs
    kept = [row for row in range(len(TOKENS)) if row not in (1, 2)]
    for name in after:
        rows = kept if name in (TABLE, BIAS) else ...
        assert after[name][rows].tobytes() == before[name][rows].tobytes()
    pieces = [TOKENS.index(piece) for piece in ("s", "##t", "##o", "##r", "##m")]
    np.testing.assert_allclose(after[TABLE][1], before[TABLE][pieces].mean(axis=0), rtol=1e-5)
    np.testing.assert_allclose(after[BIAS][1], before[BIAS][pieces].mean(), rtol=1e-5)
    assert BertConfig.from_json_file(tmp_path / "out" / "bert_config.json").vocab_size == len(TOKENS) + 1
    # Vectors of texts without a new word are the same bits.
    vectors = []
    for folder in (model, tmp_path / "out"):
        loaded = loading.load_encoder(str(folder / "bert_model.ckpt"), ModelOverrides(max_seq_length=24))
        with Encoder(loaded, inference()) as encoder:
            vectors.append([encoder.encode(texts) for texts in (["The rain fell.", "Rain and snow."], ["The storm fell."])])
    assert vectors[0][0].tobytes() == vectors[1][0].tobytes()
    assert not np.array_equal(vectors[0][1], vectors[1][1])


def test_fertility_is_shown_before_and_after_and_one_word_with_those_that_it_begins(model, corpus, tmp_path, call):
    status, out, _ = call("extend", model, f"--from={corpus}", "--top=1", "--min_frequency=3", f"--output={tmp_path / 'out'}")
    assert status == 0
    assert "words, and how often each occurs in --from (added_words.tsv has all): storm 3\n" in out
    rows = [line.split() for line in out.splitlines()[-2:]]
    assert [row[:4] for row in rows] == [["before", "20", "43", "2.1500"], ["after", "20", "31", "1.5500"]]
    (tmp_path / "words").write_text("thunder\n")
    corpus.write_text("The thunders.", encoding="utf-8")
    _, out, _ = call("extend", model, f"--add={tmp_path / 'words'}", f"--text={corpus}", f"--output={tmp_path / 'two'}")
    assert "two: 1 word added, 1 in unused rows\n" in out
    assert "other words that are split differently, since they begin with a new one: 1 (thunders)\n" in out


def test_rare_words_are_not_added_and_listed_ones_come_before_those_of_a_text(extended, caplog, model, tmp_path):
    assert [new.word for new in extended(min_frequency=2).words] == ["storm"]
    assert "--top=3: only 1 word to add occur 2 times or more" in caplog.text
    with pytest.raises(
        DataError, match=r"no word of several pieces occurs 5 times or more \(--min_frequency\); nothing was written"
    ):
        extended(min_frequency=None, overwrite=True)
    (tmp_path / "words").write_text("snowy\nthunder\n")
    done = extended(top=2, add=tmp_path / "words", overwrite=True)
    assert [(new.word, new.times) for new in done.words] == [("snowy", 0), ("thunder", 0), ("storm", 3), ("uber", 1)]
    (tmp_path / "words").write_text("Storm\nwell-known\n")
    done = bert_tf.extend_vocabulary(model, add=tmp_path / "words", output=tmp_path / "listed")
    assert [new.word for new in done.words] == ["storm"]
    assert done.fertility == {}
    assert "'well-known' is left out: the tokenizer cuts it into well - known" in caplog.text


def test_a_trained_model_keeps_its_head_its_record_and_its_decision_rule(tmp_path):
    project = write_project(tmp_path / "tiny", layers=1)
    run = decide(write_run(tmp_path / "run", project), 40)
    (tmp_path / "words").write_text("Cloudy\nclouds\n")
    done = bert_tf.extend_vocabulary(run, add=tmp_path / "words", output=tmp_path / "out")
    record = json.loads((tmp_path / "out" / "run_config.json").read_text())
    assert record["training"]["kind"] == "classification"
    assert [new.word for new in done.words] == ["cloudy", "clouds"]
    with bert_tf.load(tmp_path / "out") as loaded:
        assert loaded.predict([("clouds came", "soup")])[0].label in ("0", "1")
        with bert_tf.load(run) as before:
            assert loaded.predict([("rain came", "soup")]) == before.predict([("rain came", "soup")])


def test_a_hugging_face_folder_loses_the_tokenizer_that_has_a_vocabulary_of_its_own(tmp_path):
    source = huggingface.write_folder(tmp_path / "hf")
    (source / "tokenizer.json").write_text(json.dumps({"normalizer": {"type": "BertNormalizer", "lowercase": True}}))
    (tmp_path / "words").write_text("clouds\n")
    bert_tf.extend_vocabulary(source, add=tmp_path / "words", output=tmp_path / "out")
    assert sorted(os.listdir(tmp_path / "out")) == [
        *("added_words.tsv", "bert_config.json", "bert_model.ckpt.data-00000-of-00001", "bert_model.ckpt.index"),
        *("made_from.json", "tokenizer_config.json", "vocab.txt"),
    ]
    assert json.loads((tmp_path / "out" / "tokenizer_config.json").read_text()) == {"do_lower_case": True}
    loading.load_encoder(str(tmp_path / "out" / "bert_model.ckpt"), ModelOverrides(max_seq_length=24))


def test_outputs_are_the_same_bytes_twice_and_an_interruption_leaves_nothing(extended, corpus, tmp_path, monkeypatch):
    def interrupted(*_, **__):
        raise KeyboardInterrupt

    for name in ("extensions.checkpoint.models.note", "io.atomic.write_text"):
        monkeypatch.setattr(f"bert_tf.{name}", interrupted)
        with pytest.raises(KeyboardInterrupt):
            extended() if name.endswith("note") else bert_tf.make_vocabulary(corpus, size=60, output=tmp_path / "out")
        monkeypatch.undo()
        assert os.listdir(tmp_path) == ["corpus.txt"]
    written = []
    for _ in range(2):
        extended(overwrite=True)
        written.append({path.name: path.read_bytes() for path in (tmp_path / "out").iterdir()})
    assert written[0] == written[1]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("make --output={out}", "vocabulary make: CORPUS ... missing: python -m bert_tf vocabulary make CORPUS ..."),
        ("make {corpus}", "--output is required: vocab.txt to write"),
        ("make {tmp}/none --output={out}", "{tmp}/none: cannot read the file: No such file or directory"),
        ("make {tmp}/none* --output={out}", "{tmp}/none*: no file matches"),
        ("make {tmp}/empty --output={out}", "{tmp}/empty: the text has no words"),
        ("make {corpus} --size=12 --output={out}", "--size=12: 5 special pieces and "),
        ("make {corpus} --unused=16000000 --output={out}", "--unused=16000000: --size=30522 counts these rows too"),
        ("make {corpus} --min_frequency=99 --output={out}", "--min_frequency=99: no character of the corpus occurs that often"),
        ("make {corpus} --output={tmp}", "{tmp}: is a folder; name a file in it"),
        ("make {corpus} --output={corpus}", "{corpus}: already exists; name another --output, or add --overwrite"),
        ("make {corpus} --output={corpus} --overwrite", "{corpus}: is both input and output"),
        ("extend {model} --output={out}", "give --add=FILE, a list of words, --from=TEXT"),
        ("extend {model} --add={tmp}/words --top=3 --output={out}", "--top belongs to --from"),
        ("extend {model} --add={tmp}/words --min_frequency=3 --output={out}", "--min_frequency belongs to --from"),
        ("extend {model} --from={corpus}", "--output is required: folder to write"),
        ("extend {model} --from={corpus} --output={tmp}", "{tmp}: was not written by this command"),
        ("extend {tmp}/none --from={corpus} --output={out}", "{tmp}/none: no checkpoint of this name"),
        ("extend {model} --add={tmp}/none --output={out}", "{tmp}/none: no such file"),
        ("extend {model} --add={tmp}/twice --output={out}", "{tmp}/twice:3: 'storm' is already in line 1"),
        ("extend {model} --add={tmp}/blanks --output={out}", "{tmp}/blanks:1: 'the storm' is several words"),
        ("extend {model} --add={tmp}/known --output={out}", "{tmp}/known: none of the words can be added; nothing was written"),
        ("extend {model} --from={tmp}/known --output={out}", "{tmp}/known: no word of several pieces occurs 5 times"),
        ("extend {model} --from={corpus} --vocab_file={tmp}/short --output={out}", "the vocabulary has 40 pieces, the config"),
        ("extend {model} --from={corpus} --nodo_lower_case --output={out}", "the vocabulary is uncased"),
        ("show {model} --input_format=book", "--input_format belongs to --text; add it, or leave this out"),
        ("extend {model} --add={tmp}/words --language=de --output={out}", "--language belongs to --from and --text; add"),
        ("show {tmp}/none", "{tmp}/none: no such file"),
        ("show {tmp}", "{tmp}/vocab.txt: cannot read the vocabulary: No such file or directory"),
        ("show {model} --text={tmp}/empty", "{tmp}/empty: the text has no words"),
        ("shwo", "vocabulary: unknown action 'shwo'; did you mean show?"),
    ],
)
def test_a_mistake_is_one_line(words, said, model, corpus, tmp_path, call):
    inputs = {"empty": "\n \n", "words": "storm\n", "twice": "storm\nsun\nstorm\n", "blanks": "the storm\n"}
    inputs |= {"known": "rain\nfell\n", "short": "\n".join(TOKENS[:40])}
    for name, text in inputs.items():
        (tmp_path / name).write_text(text)
    names = {"tmp": tmp_path, "corpus": corpus, "model": model, "out": tmp_path / "out"}
    status, _, errors = call(*(word.format(**names) for word in words.split()))
    assert status == 2
    assert len(errors) == 1
    assert errors[0].startswith(f"error: {said.format(**names)}")
    assert set(os.listdir(tmp_path)) == {"corpus.txt", *inputs}
