"""Parts of a model by the names of its tensors."""

from __future__ import annotations

import re

from bert_tf.head_spec import VARIABLE_SCOPES

EMBEDDINGS, POOLER, HEAD, OPTIMIZER, OTHER = "embeddings", "pooler", "head", "optimizer", "other"
# The first match in a name decides; names are published ones, Hugging Face's or Keras's.
_RELATIVE = "rel_embeddings|relative_attention_bias|embedding_hidden_mapping_in"  # of DeBERTa, MPNet, ALBERT
_GROUPS = (
    (
        OPTIMIZER,
        re.compile(r"/(?:adam_[mv]|lamb_[mv]|ema)$|^loss_scale/|^beta[12]_power|(?:^|/)(?:optimizer|\.OPTIMIZER_SLOT)/"),
    ),
    ("layer {}", re.compile(r"(?:^|[./])(?:layers?|albert_layer_groups)[._](\d+)(?:[./]|$)")),
    (
        EMBEDDINGS,
        re.compile(
            rf"(?:^|[./])(?:embeddings(?:_project)?|word_embeddings|type_embeddings|position_embedding|{_RELATIVE})(?:[./]|$)"
        ),
    ),
    (POOLER, re.compile(r"(?:^|[./])pooler(?:_transform)?[./]")),
    (HEAD, re.compile(rf"^(?:{VARIABLE_SCOPES}|classifier|qa_outputs|decoder|lm_head|lm_predictions|vocab_\w+)(?:[./]|$)")),
)


def group_of(name: str) -> str:
    """Returns the part of the model that an entry belongs to: embeddings, layer 3, pooler, head, optimizer, other."""
    for group, pattern in _GROUPS:
        match = pattern.search(name)
        if match:
            return group.format(*match.groups())
    return OTHER


def group_order(group: str) -> tuple[int, int]:
    if group.startswith("layer "):
        return 1, int(group.partition(" ")[2])
    return {EMBEDDINGS: 0, POOLER: 2, HEAD: 3, OPTIMIZER: 4}.get(group, 5), 0
