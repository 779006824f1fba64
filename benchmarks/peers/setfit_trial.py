"""Peer: SetFit on few rows, for benchmarks.few_labels. Reads a JSON file of rows, adds the score on dev to it."""

import json
import sys

from datasets import Dataset
from setfit import SetFitModel, Trainer, TrainingArguments
from sklearn import metrics

_SCORES = {"accuracy": metrics.accuracy_score, "matthews_correlation": metrics.matthews_corrcoef}


def main(job, encoder):
    with open(job, encoding="utf-8") as file:
        asked = json.load(file)
    model = SetFitModel.from_pretrained(encoder)  # mean of token vectors, as Sentence Transformers does by default
    model.model_body.max_seq_length = asked["max_seq_length"]
    texts, labels = zip(*asked["train"])
    rows = Dataset.from_dict({"text": list(texts), "label": [int(label == max(labels)) for label in labels]})
    arguments = TrainingArguments(
        batch_size=16, num_epochs=1, report_to="none", output_dir=f"{job}.trained", save_strategy="no"
    )
    Trainer(model=model, args=arguments, train_dataset=rows).train()
    texts, answers = zip(*asked["dev"])
    predicted = [int(one) for one in model.predict(list(texts))]
    score = _SCORES[asked["metric"]]([int(answer == max(labels)) for answer in answers], predicted)
    with open(job, "w", encoding="utf-8") as file:
        json.dump({"score": float(score)}, file)


if __name__ == "__main__":
    main(*sys.argv[1:])
