"""Encodes a batch with the PyTorch BertModel of transformers: FOLDER INPUT.npz OUTPUT.npz; run by the test beside it."""

import sys

import numpy as np
import torch
import transformers


def main(folder: str, source: str, target: str) -> None:
    model = transformers.BertModel.from_pretrained(folder, attn_implementation="eager").eval()
    ids, mask, segments = (torch.tensor(array, dtype=torch.long) for array in np.load(source).values())
    with torch.no_grad():
        out = model(input_ids=ids, attention_mask=mask, token_type_ids=segments)
    np.savez(target, sequence=out.last_hidden_state.numpy(), pooled=out.pooler_output.numpy())


if __name__ == "__main__":
    main(*sys.argv[1:])
