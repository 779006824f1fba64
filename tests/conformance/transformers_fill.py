"""Fills in masked words by the pipeline of transformers: FOLDER with texts.json to filled.json, ids and scores of the best."""

import json
import pathlib
import sys

import transformers


def main():
    folder, top = pathlib.Path(sys.argv[1]), int(sys.argv[2])
    fill = transformers.pipeline("fill-mask", model=str(folder), tokenizer=str(folder), device="cpu", top_k=top)
    filled = []
    for text in json.loads((folder / "texts.json").read_text()):
        places = fill(text)
        if text.count("[MASK]") == 1:
            places = [places]
        filled.append([[(word["token"], word["score"]) for word in place] for place in places])
    (folder / "filled.json").write_text(json.dumps(filled))


main()
