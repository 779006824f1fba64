"""Scores where answers begin and end with transformers: FOLDER INPUT.npz OUTPUT.npz; run by the test beside it."""

import sys

import numpy as np
import torch
import transformers


def main(folder: str, source: str, target: str) -> None:
    given = {name: torch.tensor(array) for name, array in np.load(source).items()}
    model = transformers.BertForQuestionAnswering.from_pretrained(folder, attn_implementation="eager").eval()
    model.qa_outputs.load_state_dict({"weight": given["weights"], "bias": given["bias"]})
    ids, mask, segments = (given[name].long() for name in ("input_ids", "input_mask", "segment_ids"))
    with torch.no_grad():
        out = model(input_ids=ids, attention_mask=mask, token_type_ids=segments)
    np.savez(target, logits=torch.stack([out.start_logits, out.end_logits], dim=-1).numpy())


if __name__ == "__main__":
    main(*sys.argv[1:])
