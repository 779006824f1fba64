"""The command line of the service."""

from __future__ import annotations

import pytest

from bert_tf.commands import serve
from bert_tf.errors import FlagError


def test_a_run_and_flags_in_any_order():
    settings = serve.parse(["serve", "--port=0", "out/mrpc", "--admin", "--verbosity=1"])
    config = settings.config
    assert (config.run, config.address.port, config.address.admin, settings.verbosity) == ("out/mrpc", 0, True, 1)


@pytest.mark.parametrize("words", [[], ["a", "b"]])
def test_one_run_is_named(words):
    with pytest.raises(FlagError, match="serve takes the folder of one run"):
        serve.parse(["serve", *words])


def test_help_has_every_flag(capsys):
    assert serve.main(["serve", "--help"]) == 0
    assert "--max_queue_tokens" in capsys.readouterr().out
