"""Bad input through the command line: exit status 2, one line a problem, nothing left; and the published commands."""

import dataclasses
from pathlib import Path

import numpy as np
import pytest

from bert_tf.checkpoints.reader import write_checkpoint
from bert_tf.config import BertConfig
from bert_tf.tasks.registry import get_task
from bert_tf.tasks.settings import of_values
from bert_tf.tokenization.vocabulary import SPECIAL_TOKENS
from bert_tf.training import fine_tune
from tests import classifier, lines
from tests.tiny import TOKENS, TinyProject, random_weights, write_project


@pytest.fixture
def project(tmp_path, monkeypatch) -> TinyProject:
    for name in ("GLUE_DIR", "BERT_BASE_DIR"):
        monkeypatch.delenv(name, raising=False)
    return write_project(tmp_path / "project")


@pytest.fixture
def refused(project, tmp_path, capsys):
    """Runs a command line that must be refused; returns its problems, without `error: `."""

    def run(**extra: object) -> list[str]:
        output_dir = tmp_path / "out"
        assert classifier.run(*project.flags(output_dir, verbosity=-1, **extra)) == 2
        assert not output_dir.exists()
        captured = capsys.readouterr()
        lines = captured.err.splitlines()
        assert captured.out == ""
        assert all(line.startswith("error: ") for line in lines)
        return [line.removeprefix("error: ") for line in lines]

    return run


DAMAGED = "; convert the file from its encoding, as with iconv -f ENCODING -t UTF-8"


def test_all_damaged_rows_are_listed_with_the_flag_that_leaves_them_out(project, refused, caplog):
    path = project.data_dir / "train.tsv"
    rows = [line.split(b"\t") for line in path.read_bytes().split(b"\n")]
    rows[1][2], rows[3][0], rows[4][3] = b"\xff", b"yes", b" "
    del rows[2][2]
    path.write_bytes(b"\n".join(map(b"\t".join, rows)))
    assert refused() == [
        f"{path}:2: not UTF-8: byte 8 of the line is 0xff{DAMAGED}",
        f"{path}:3: 4 cells, expected 5; cells are separated by tabs",
        f"{path}:4: unknown label 'yes'; known are 0, 1",
        f"{path}:5: the text in column '#1 String' is empty",
        f"{path}: 4 rows cannot be used; correct the file, or add --skip_bad_rows",
    ]
    task = get_task("MRPC", of_values({"skip_bad_rows": True}))
    assert len(task.examples(project.data_dir, "train")) == 36
    assert f"{path}: rows left out, since they cannot be used: 4" in caplog.messages


def test_bad_input_is_one_line_before_training(project, refused):
    """What other layers refuse: estimator/test_preflight.py, training/test_sources.py, tasks/test_registry.py."""
    index = Path(f"{project.init_checkpoint}.index")
    whole = index.read_bytes()
    index.write_bytes(whole[:-100])
    [line] = refused()
    assert line.startswith(f"{project.init_checkpoint}: damaged")
    index.write_bytes(whole)
    (project.data_dir / "test.tsv").unlink()
    [line] = refused(do_train=True, do_predict=True)
    assert line.startswith(f"{project.data_dir}/test.tsv: cannot read the file: No such file or directory")
    project.bert_config_file.write_text("{")
    [line] = refused()
    assert line.startswith(f"{project.bert_config_file}:1: not JSON: ")


def test_all_misfits_are_reported_at_once(project, refused):
    project.vocab_file.write_text("\n".join([*TOKENS[:5], *map(str.title, TOKENS[5:]), "More"]))
    weights = random_weights(dataclasses.replace(BertConfig.tiny(len(TOKENS)), hidden_size=16))
    write_checkpoint(project.init_checkpoint, weights)
    problems = refused(max_seq_length=100, num_train_epochs=0.01)
    begins = ("the vocabulary has", "--max_seq_length=100", "the vocabulary is cased", "40 examples in 0.01 epochs")
    begins = (*begins, project.init_checkpoint)
    assert len(problems) == len(begins)
    assert all(problem.startswith(begin) for problem, begin in zip(problems, begins))


def test_ctrl_c_is_one_line_and_an_output_folder_that_is_a_file_is_left_alone(project, tmp_path, capsys, monkeypatch):
    path = tmp_path / "file"
    path.write_text("mine")
    assert classifier.run(*project.flags(path, verbosity=-1)) == 2
    assert capsys.readouterr().err == f"error: {path}: cannot write: File exists; nothing was changed\n"
    assert path.read_text() == "mine"

    def interrupt(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr("bert_tf.training.fine_tune.fine_tune", interrupt)
    assert classifier.run("--task_name=MRPC") == 130
    assert capsys.readouterr().err == "error: stopped at once; the same command continues from the last checkpoint\n"


# The shape of the published Chinese vocabulary: ideographs one by one, lower-case Latin pieces, and two with a capital.
IDEOGRAPHS = [chr(0x4E00 + n) for n in range(40)]
LATIN = ["bert", *"abcdefghijklmnopqrst", *(f"##{letter}" for letter in "abcdefghijklmnopqrst")]
CHINESE = [SPECIAL_TOKENS[0], *(f"[unused{n}]" for n in range(1, 9)), *SPECIAL_TOKENS[1:], "<S>", "<T>", *IDEOGRAPHS, *LATIN]


def published_xnli(folder):
    """Writes a model and data; returns the fine-tuning example of the published multilingual.md, without its output folder."""
    model, data, rng = folder / "chinese_L-2_H-8_A-2", folder / "xnli", np.random.default_rng(2)
    model.mkdir()
    config = dataclasses.replace(BertConfig.tiny(vocab_size=len(CHINESE)), num_hidden_layers=1, max_position_embeddings=128)
    (model / "vocab.txt").write_text("\n".join(CHINESE) + "\n", encoding="utf-8")
    (model / "bert_config.json").write_text(config.to_json())
    write_checkpoint(model / "bert_model.ckpt", random_weights(config))
    texts = ["BERT " + "".join(rng.choice(IDEOGRAPHS, 6)) for _ in range(72)]
    pairs, labels = list(zip(texts[::2], texts[1::2])), ("contradictory", "entailment", "neutral") * 12
    train = ["premise\thypo\tlabel", *("\t".join((*pair, label)) for pair, label in zip(pairs, labels))]
    dev = ["language\tgold_label\tp1\tp2\tp3\tp4\tsentence1\tsentence2"]
    dev += ["\t".join((language, "neutral", *[""] * 4, *pair)) for pair in pairs[:6] for language in ("de", "zh")]
    (data / "multinli").mkdir(parents=True)
    for name, rows in (("multinli/multinli.train.zh.tsv", train), ("xnli.dev.tsv", dev)):
        (data / name).write_text("".join(f"{row}\n" for row in rows), encoding="utf-8")
    return [
        *("run_classifier.py", "--task_name=XNLI", "--do_train=true", "--do_eval=true", f"--data_dir={data}"),
        *(f"--vocab_file={model}/vocab.txt", f"--bert_config_file={model}/bert_config.json"),
        *(f"--init_checkpoint={model}/bert_model.ckpt", "--max_seq_length=128", "--train_batch_size=32"),
        *("--learning_rate=5e-5", "--num_train_epochs=2.0"),
    ]


def test_the_published_xnli_command_trains_on_the_published_chinese_vocabulary(tmp_path, monkeypatch, caplog, capsys):
    caplog.set_level("INFO", logger="absl")
    monkeypatch.setattr(fine_tune.results, "write_page", lambda _: None)
    command, out = published_xnli(tmp_path), tmp_path / "out"
    assert classifier.main([*command, f"--output_dir={out}/", "--use_tpu=false", "--num_tpu_cores=8"]) == 0
    assert "there is no TPU here, so these have no effect: --use_tpu, --num_tpu_cores" in caplog.messages
    assert not [message for message in caplog.messages if "do_lower_case" in message]
    examples = (out / "examples.txt").read_text(encoding="utf-8").splitlines()
    tokens = next(line for line in examples if line.startswith("tokens: "))
    assert tokens.split()[1:3] == ["[CLS]", "bert"]
    results = (out / "eval_results.txt").read_text()
    assert {"eval_accuracy", "eval_accuracy_de", "eval_accuracy_zh"} <= {line.split(" = ")[0] for line in results.splitlines()}
    (out / "run_config.json").unlink()  # without it, prediction goes by the vocabulary
    (tmp_path / "in.tsv").write_text("sentence1\tsentence2\nBERT\tBERT\nbert\tbert\n")
    arguments = [f"--checkpoint={out}", "--task_name=XNLI", f"--input={tmp_path}/in.tsv", f"--output={tmp_path}/out.tsv"]
    assert lines.run("predict", *arguments, "--text_a=sentence1", "--text_b=sentence2", "--verbosity=-1") == 0
    first, second = (line.split("\t")[1:] for line in (tmp_path / "out.tsv").read_text().splitlines()[1:])
    assert first == second
    # Lower-casing turned off is refused with the right advice.
    capsys.readouterr()
    assert classifier.main([*command, f"--output_dir={tmp_path}/cased", "--do_lower=False", "--verbosity=-1"]) == 2
    assert capsys.readouterr().err == (
        "error: the vocabulary is uncased (0 of 41 pieces with letters have a capital; the folder chinese_L-2_H-8_A-2 is named "
        "as uncased ones are) but --do_lower_case is off; drop --nodo_lower_case\n"
    )
    assert not (tmp_path / "cased").exists()
