"""The `transformers` pipeline as a contender of benchmarks.engines.

    PYTHON transformers_pipeline.py FOLDER THREADS CLOCK

Reads requests, one line of JSON each, a list of lists of pairs; writes the seconds of each, and all labels.
"""

import json
import sys
import time

import torch
import transformers


def main():
    folder, threads, clock = sys.argv[1:]
    torch.set_num_threads(int(threads))
    now = time.process_time if clock == "cpu" else time.perf_counter
    out, sys.stdout = sys.stdout, sys.stderr  # whatever is printed is no answer
    ask = transformers.pipeline("text-classification", model=folder, device="cpu", truncation=True)
    for line in sys.stdin:
        seconds, labels = [], []
        for request in json.loads(line):
            pairs = [{"text": first, "text_pair": second} for first, second in request]
            began = now()
            found = [ask(pairs[0])] if len(pairs) == 1 else ask(pairs, batch_size=32)
            seconds.append(now() - began)
            labels += [row["label"] for row in found]
        out.write(json.dumps([seconds, labels]) + "\n")
        out.flush()


main()
