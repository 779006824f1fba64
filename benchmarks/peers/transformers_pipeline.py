"""Worker: the `transformers` pipeline, for benchmarks.engines; a request is a list of lists of pairs."""

import time

import torch
import transformers
from protocol import run_worker


def work(workload, channel):
    torch.set_num_threads(workload.threads)
    clock = time.process_time if workload.clock == "cpu" else time.perf_counter
    ask = transformers.pipeline("text-classification", model=workload.model, device="cpu", truncation=True)

    def run(requests):
        seconds, labels = [], []
        for request in requests:
            pairs = [{"text": first, "text_pair": second} for first, second in request]
            began = clock()
            found = [ask(pairs[0])] if len(pairs) == 1 else ask(pairs, batch_size=32)
            seconds.append(clock() - began)
            labels += [row["label"] for row in found]
        return {"seconds": seconds, "labels": labels}

    channel.serve({"run": run})


if __name__ == "__main__":
    run_worker(work)
