"""Says of a folder of weights that is not read as it is what was seen, and which command helps."""

from __future__ import annotations

from pathlib import Path

from bert_tf.checkpoints.huggingface import WEIGHTS_NAME

SHARDS = f"{WEIGHTS_NAME}.index.json"
_PYTORCH = "pytorch_model.bin"
OF_PYTORCH = (".bin", ".pt", ".pth")
NOT_PICKLED = "PyTorch pickles are not read, since loading them runs code"
_RESAVED = (
    'python -c "import sys; from transformers import AutoModel, AutoTokenizer;'
    ' [kind.from_pretrained(sys.argv[1]).save_pretrained(sys.argv[2]) for kind in (AutoModel, AutoTokenizer)]" {} OUTPUT'
)
_OTHERS = {"tf_model.h5": "Keras weights of transformers", "flax_model.msgpack": "weights of Flax"}


def unread(folder: Path) -> str:
    """Empty if there is nothing known."""
    names = sorted(path.name for path in folder.iterdir() if path.is_file()) if folder.is_dir() else []
    if SHARDS in names:
        return (
            f"the weights are in several files ({SHARDS}); join them:"
            f" python -m bert_tf checkpoint convert {folder} --to=tf1 --output=OUTPUT"
        )
    pickled = [name for name in names if name.endswith(OF_PYTORCH) or name == f"{_PYTORCH}.index.json"]
    if pickled:
        return f"{pickled[0]}: {NOT_PICKLED}; save it as {WEIGHTS_NAME}: {_RESAVED.format(folder)}"
    other = next((name for name in _OTHERS if name in names), None)
    if other is not None:
        return f"{other}: {_OTHERS[other]} are not read; save the model as {WEIGHTS_NAME}: {_RESAVED.format(folder)}"
    single = [name for name in names if name.endswith(Path(WEIGHTS_NAME).suffix)]
    return f"{single[0]} is not read; name it {WEIGHTS_NAME}" if len(single) == 1 else ""
