"""Settings of the checkpoint command, by action; imports no TensorFlow."""

from __future__ import annotations

from collections.abc import Mapping

from bert_tf.settings import Setting

TF1, TF2, HF = "tf1", "tf2-names", "hf"
LAYOUTS = (TF1, TF2, HF)

_OUTPUT = Setting("output", str, None, "folder to write (required); one that exists is kept unless --overwrite is given")
_OVERWRITE = Setting("overwrite", bool, False, "replace a folder that this command has written")
_TOP = Setting("top", int, 20, "how many variables to list, those that moved most first", 0)
SETTINGS: Mapping[str, tuple[Setting, ...]] = {
    "inspect": (),
    "diff": (_TOP,),
    "average": (
        _OUTPUT,
        Setting("weights", str, None, "how much each checkpoint counts, as 1,2,1; else all the same"),
        Setting("last", int, 0, "of one run: the mean of so many newest checkpoints", 0),
        Setting("best", int, 0, "of one run: the mean of so many that were evaluated best while it trained", 0),
        Setting("metric", str, None, "what tells the best: a metric, or loss; else what the run went by"),
        _OVERWRITE,
    ),
    "strip": (_OUTPUT, _OVERWRITE),
    "convert": (
        Setting("to", str, None, f"layout (required): {', '.join(LAYOUTS)} (docs/checkpoints.md)", choices=LAYOUTS),
        _OUTPUT,
        Setting("bert_config_file", str, None, "sizes of the model; else beside the weights"),
        Setting("vocab_file", str, None, "word pieces of the model; else beside the weights"),
        _OVERWRITE,
    ),
    "rename": (
        Setting("map", str, None, "rules with blanks between them, 'OLD=>NEW' by regular expression; or a file, one a line"),
        Setting("dry_run", bool, False, "print the table of names, and write nothing"),
        _OUTPUT,
        _OVERWRITE,
    ),
}
