"""Says of a folder of weights that is not read as it is what was seen, and which command helps."""

from __future__ import annotations

from pathlib import Path

from bert_tf.checkpoints import model_formats
from bert_tf.checkpoints.weight_files import TORCH_NAME, WEIGHTS_NAME

_RESAVED = (
    'python -c "import sys; from transformers import AutoModel, AutoTokenizer;'
    ' [kind.from_pretrained(sys.argv[1]).save_pretrained(sys.argv[2]) for kind in (AutoModel, AutoTokenizer)]" {} OUTPUT'
)
_OTHERS = {"tf_model.h5": "Keras weights of transformers", "flax_model.msgpack": "weights of Flax"}


def unread(folder: Path) -> str:
    """Empty if there is nothing known."""
    names = sorted(path.name for path in folder.iterdir() if path.is_file()) if folder.is_dir() else []
    of_format = next((why for one in model_formats.every() if (why := one.why_unread(folder))), "")
    if of_format:
        return of_format
    other = next((name for name in _OTHERS if name in names), None)
    if other is not None:
        return f"{other}: {_OTHERS[other]} are not read; save the model as {WEIGHTS_NAME}: {_RESAVED.format(folder)}"
    for usual in (WEIGHTS_NAME, TORCH_NAME):
        single = [name for name in names if name.endswith(Path(usual).suffix)]
        if len(single) == 1:
            return f"{single[0]} is not read; name it {usual}"
    return ""
