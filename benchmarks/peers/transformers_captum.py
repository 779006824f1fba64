"""Worker: Captum's integrated gradients of a `transformers` classifier, for benchmarks.explanations."""

import time

import torch
import transformers
from captum.attr import LayerIntegratedGradients
from protocol import run_worker


def work(workload, channel):
    torch.set_num_threads(workload.threads)
    model = transformers.AutoModelForSequenceClassification.from_pretrained(workload.model, dtype=torch.float32).eval()

    def logits(input_ids, segment_ids):
        return model(input_ids=input_ids, token_type_ids=segment_ids).logits

    method = LayerIntegratedGradients(logits, model.get_input_embeddings())

    def run(rows):
        """Scores of the tokens of each row, and the seconds of all."""
        began, scores = time.perf_counter(), []
        for row in rows:
            ids, baseline, segments = (torch.tensor([row[name]]) for name in ("ids", "baseline", "segments"))
            with torch.no_grad():
                predicted = int(logits(ids, segments).argmax())
            settings = {"n_steps": row["steps"]} if "steps" in row else {}
            found = method.attribute(ids, baseline, predicted, (segments,), **settings)
            scores.append(found.sum(dim=-1)[0].tolist())
        return {"seconds": time.perf_counter() - began, "scores": scores}

    channel.serve({"run": run})


if __name__ == "__main__":
    run_worker(work)
