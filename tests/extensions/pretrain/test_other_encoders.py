"""Pre-training goes on from a folder of another encoder than BERT, with a tokenizer of its own."""

import numpy as np
import pytest

import bert_tf
from bert_tf.checkpoints import huggingface
from bert_tf.errors import FlagError, PreflightError
from tests.modeling.test_masked_words_oracle import weights_of, write_folder
from tests.tiny import held
from tests.training import reading

pytest.importorskip("tokenizers")
HOW = {"nsp": False, "max_seq_length": 8, "train_batch_size": 8, "num_train_steps": 3, "held_out_documents": 2}


@pytest.fixture(scope="module", params=["modernbert", "roberta"])
def folder(request, tmp_path_factory):
    return write_folder(tmp_path_factory.mktemp("hf") / request.param, request.param)


@pytest.fixture(scope="module")
def text(tmp_path_factory):
    """Documents of some sentences."""
    path, random = tmp_path_factory.mktemp("text") / "text.txt", np.random.default_rng(0)
    documents = ([" ".join(["w", *map(str, random.integers(0, 10, 5))]) for _ in range(4)] for _ in range(12))
    path.write_text("\n\n".join("\n".join(sentences) for sentences in documents) + "\n")
    return path


@pytest.fixture(scope="module")
def trained(folder, text, tmp_path_factory):
    out = tmp_path_factory.mktemp("out") / "run"
    made = bert_tf.pretrain(text, init_checkpoint=folder, output_dir=out, do_whole_word_mask=True, learning_rate=0.01, **HOW)
    assert made == out
    return made


def test_it_starts_from_the_head_of_the_folder_and_fills_masks_afterwards(folder, trained):
    assert "masked_lm_loss" in "".join(reading.results(trained))
    before, after = held(huggingface_of(folder)), held(trained / "model.ckpt-3")
    head = {name for name in after if name.startswith("cls/predictions")}
    head |= {name for name in after if "pooler" in name and folder.name == "modernbert"}
    assert {name: before[name].shape for name in head} == {name: after[name].shape for name in head}
    assert all(0 < np.abs(after[name] - before[name]).max() < 0.1 for name in head)  # moved, from where it was
    with bert_tf.word_filler(trained) as filler:
        ((place,),) = filler.fill_mask(["w 1 [MASK] 3"], top=3)
    assert (place.start, place.end, len(place.words)) == (4, 10, 3)


def huggingface_of(folder):
    if not (folder / "converted").exists():
        huggingface.convert(folder, folder / "converted")
    return folder / "converted" / "bert_model.ckpt"


def test_it_is_exported_as_the_class_of_masked_words(folder, trained, tmp_path):
    with bert_tf.load(trained) as model:
        model.export("huggingface", tmp_path / "hf")
    names = huggingface.weight_files.WeightFiles(tmp_path / "hf" / "model.safetensors").entries
    assert names.keys() == weights_of(folder.name).keys()
    assert 'model("It rained all <mask>.")' in (tmp_path / "hf" / "README.md").read_text()
    texts = ["w1[MASK]3"]  # short enough for both
    with bert_tf.word_filler(tmp_path / "hf") as exported, bert_tf.word_filler(trained) as run:
        assert exported.fill_mask(texts) == run.fill_mask(texts)


@pytest.mark.parametrize("folder", ["modernbert", "roberta", "distilbert", "deberta-v2"], indirect=True)
def test_next_sentences_are_refused(folder, text, tmp_path):
    with pytest.raises((FlagError, PreflightError), match="--nsp: models of type .* do not learn next sentences"):
        bert_tf.pretrain(text, init_checkpoint=folder, output_dir=tmp_path / "out", **{**HOW, "nsp": True})
    assert not (tmp_path / "out" / "run_config.json").exists()
