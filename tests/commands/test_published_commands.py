"""Command lines of the published README files, with a model and data of their shape made for the test."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import numpy as np
import pytest

from bert_tf.checkpoints.reader import write_checkpoint
from bert_tf.config import BertConfig
from bert_tf.tokenization.vocabulary import SPECIAL_TOKENS
from bert_tf.training import fine_tune
from tests import classifier, lines
from tests.tiny import random_weights

# The shape of the published Chinese vocabulary: ideographs one by one, lower-case Latin pieces, and two with a capital.
IDEOGRAPHS = [chr(0x4E00 + n) for n in range(40)]
LATIN = ["bert", *"abcdefghijklmnopqrst", *(f"##{letter}" for letter in "abcdefghijklmnopqrst")]
CHINESE = [SPECIAL_TOKENS[0], *(f"[unused{n}]" for n in range(1, 9)), *SPECIAL_TOKENS[1:], "<S>", "<T>", *IDEOGRAPHS, *LATIN]
LABELS = ("contradictory", "entailment", "neutral")


def sentence(rng: np.random.Generator) -> str:
    return "BERT " + "".join(rng.choice(IDEOGRAPHS, 6))


def write_model(folder: Path) -> Path:
    folder.mkdir(parents=True)
    config = dataclasses.replace(BertConfig.tiny(vocab_size=len(CHINESE)), num_hidden_layers=1)
    (folder / "vocab.txt").write_text("\n".join(CHINESE) + "\n", encoding="utf-8")
    (folder / "bert_config.json").write_text(config.to_json().replace("64", "128"), encoding="utf-8")
    config = BertConfig.from_json_file(folder / "bert_config.json")
    write_checkpoint(folder / "bert_model.ckpt", random_weights(config))
    return folder


def write_xnli(folder: Path) -> Path:
    """Writes the files that the published script opens."""
    rng = np.random.default_rng(2)
    pairs = [(sentence(rng), sentence(rng), LABELS[n % 3]) for n in range(36)]
    (folder / "multinli").mkdir(parents=True)
    train = ["premise\thypo\tlabel", *map("\t".join, pairs)]
    (folder / "multinli" / "multinli.train.zh.tsv").write_text("".join(f"{line}\n" for line in train), encoding="utf-8")
    blank = "\t" * 4
    dev = ["language\tgold_label\tp1\tp2\tp3\tp4\tsentence1\tsentence2"]
    for first, second, _ in pairs[:6]:
        dev += [f"{language}\t{LABELS[2]}{blank}\t{first}\t{second}" for language in ("de", "zh")]
    (folder / "xnli.dev.tsv").write_text("".join(f"{line}\n" for line in dev), encoding="utf-8")
    return folder


def command(model: Path, data: Path, output: Path, *more: str) -> list[str]:
    """Returns the fine-tuning example of the published multilingual.md."""
    return [
        *("run_classifier.py", "--task_name=XNLI", "--do_train=true", "--do_eval=true", f"--data_dir={data}"),
        *(f"--vocab_file={model}/vocab.txt", f"--bert_config_file={model}/bert_config.json"),
        *(f"--init_checkpoint={model}/bert_model.ckpt", "--max_seq_length=128", "--train_batch_size=32"),
        *("--learning_rate=5e-5", "--num_train_epochs=2.0", f"--output_dir={output}/", *more),
    ]


@pytest.fixture(autouse=True)
def _log(caplog):
    caplog.set_level("INFO", logger="absl")


@pytest.fixture(scope="module")
def xnli(tmp_path_factory) -> Path:
    return write_xnli(tmp_path_factory.mktemp("xnli"))


@pytest.fixture(scope="module")
def model(tmp_path_factory) -> Path:
    return write_model(tmp_path_factory.mktemp("models") / "chinese_L-2_H-8_A-2")


def test_the_published_xnli_command_trains_on_the_published_chinese_vocabulary(model, xnli, tmp_path, monkeypatch, caplog):
    monkeypatch.setattr(fine_tune.results, "write_page", lambda _: None)
    assert classifier.main(command(model, xnli, tmp_path / "out", "--use_tpu=false", "--num_tpu_cores=8")) == 0
    assert "there is no TPU here, so these have no effect: --use_tpu, --num_tpu_cores" in caplog.messages
    assert not [message for message in caplog.messages if "do_lower_case" in message]
    examples = (tmp_path / "out" / "examples.txt").read_text(encoding="utf-8").splitlines()
    tokens = next(line for line in examples if line.startswith("tokens: "))
    assert tokens.split()[1:3] == ["[CLS]", "bert"]
    results = (tmp_path / "out" / "eval_results.txt").read_text()
    assert {"eval_accuracy", "eval_accuracy_de", "eval_accuracy_zh"} <= {line.split(" = ")[0] for line in results.splitlines()}

    (tmp_path / "out" / "run_config.json").unlink()  # without it, prediction goes by the vocabulary
    (tmp_path / "in.tsv").write_text("sentence1\tsentence2\nBERT\tBERT\nbert\tbert\n")
    output = tmp_path / "predictions.tsv"
    arguments = [f"--checkpoint={tmp_path}/out", "--task_name=XNLI", f"--input={tmp_path}/in.tsv", f"--output={output}"]
    assert lines.run("predict", *arguments, "--text_a=sentence1", "--text_b=sentence2", "--verbosity=-1") == 0
    first, second = (line.split("\t")[1:] for line in output.read_text().splitlines()[1:])
    assert first == second


def test_lower_casing_turned_off_is_refused_with_the_right_advice(model, xnli, tmp_path, capsys):
    assert classifier.main(command(model, xnli, tmp_path / "out", "--do_lower=False", "--verbosity=-1")) == 2
    assert capsys.readouterr().err == (
        "error: the vocabulary is uncased (0 of 41 pieces with letters have a capital; the folder chinese_L-2_H-8_A-2 is named "
        "as uncased ones are) but --do_lower_case is off; drop --nodo_lower_case\n"
    )
    assert not (tmp_path / "out").exists()
