"""The export command: its line, and what is wrong with one."""

from __future__ import annotations

import pytest

from bert_tf.commands import export
from bert_tf.errors import FlagError

NEEDED = ["--format=saved_model", "--output=b"]


def parse(*arguments):
    return export.parse(["export", *arguments])


def test_words_and_flags_become_a_configuration():
    config = parse("--format=saved_model", "out/mrpc", "--output=b", "--max_seq_length=64", "--pairs").config
    assert (config.run, config.target.format, config.target.output) == ("out/mrpc", "saved_model", "b")
    assert config.model.max_seq_length == 64
    assert config.target.options == {"pairs": True}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (NEEDED, "export: name one run or checkpoint, not 0"),
        (["a", "b", *NEEDED], "export: name one run or checkpoint, not 2"),
        (["a", "--output=b"], "--format is required"),
        (["--compare"], "export --compare: name one run at least"),
        (["a", "--format=saved_model"], "--output is required"),
        (["a", "--format=saved_modle", "--output=b"], "did you mean saved_model"),
        (["a", *NEEDED, "--max_loss_of_metric=-1"], "max_loss_of_metric"),
        (["a", "--format=saved_model", "--output="], "--output is empty"),
    ],
)
def test_what_is_wrong_is_one_line(arguments, message):
    with pytest.raises(FlagError) as caught:
        parse(*arguments)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_runs_are_compared_in_all_formats_or_in_one():
    settings = parse("--compare", "out/mrpc", "out/squad")
    assert (settings.config, settings.compared, settings.formats) == (None, ("out/mrpc", "out/squad"), ())
    assert parse("--compare", "a", "--format=saved_model").formats == ("saved_model",)


def test_help_names_every_flag_and_the_page():
    text = export.help_text()
    assert "docs/export.md" in text
    assert all(f"--{row.name}" in text or f"--[no]{row.name}" in text for row in export.FLAGS)
