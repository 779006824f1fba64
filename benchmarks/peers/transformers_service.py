"""LitServe with a classifier of transformers behind POST /predict, for benchmarks.service_compared.

Requests and answers have the fields of `python -m bert_tf serve`. PyTorch is imported by the worker alone, so that the
listening process stays small.
"""

from __future__ import annotations

import argparse
import json

import litserve
from fastapi import Response


class Classifier(litserve.LitAPI):
    def __init__(self, folder: str, threads: int, **batching):
        super().__init__(**batching)
        self._folder, self._threads = folder, threads

    def setup(self, device):
        import torch
        import transformers

        torch.set_num_threads(self._threads)
        self._torch, self._tokenizer = torch, transformers.AutoTokenizer.from_pretrained(self._folder)
        model = transformers.AutoModelForSequenceClassification.from_pretrained(self._folder, attn_implementation="sdpa")
        self._model = model.to(device).eval()
        self._labels = [model.config.id2label[number] for number in range(model.config.num_labels)]

    def batch(self, inputs):
        return inputs

    def predict(self, x):
        texts = [row["text_a"] for row in x], [row["text_b"] for row in x]
        options = {"truncation": True, "padding": True, "return_tensors": "pt"}
        with self._torch.inference_mode():
            rows = self._model(**self._tokenizer(*texts, **options)).logits.softmax(-1).tolist()
        return [(row["id"], dict(zip(self._labels, probabilities))) for row, probabilities in zip(x, rows)]

    def unbatch(self, output):
        return output

    def encode_response(self, output):
        name, probabilities = output
        prediction = {"id": name, "label": max(probabilities, key=probabilities.get), "probabilities": probabilities}
        return Response(json.dumps({"model": "transformers", "predictions": [prediction]}), media_type="application/json")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", help="model in Hugging Face's layout")
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--threads", type=int, default=2, help="of each worker")
    parser.add_argument("--max_batch_size", type=int, default=8)
    parser.add_argument("--batch_timeout", type=float, default=0.0)
    parser.add_argument("--fast_queue", action="store_true")
    asked = parser.parse_args()
    batching = {"max_batch_size": asked.max_batch_size, "batch_timeout": asked.batch_timeout}
    api = Classifier(asked.folder, asked.threads, **batching)
    server = litserve.LitServer(api, accelerator="cpu", workers_per_device=asked.workers, fast_queue=asked.fast_queue)
    server.run(host="127.0.0.1", port=asked.port, num_api_servers=1, log_level="warning", generate_client_file=False)


if __name__ == "__main__":
    main()
