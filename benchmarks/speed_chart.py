"""The bar chart of the README: python -m benchmarks.speed_chart draws docs/pictures/speed.png from a record in results/."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from benchmarks.plot import require_matplotlib

ROOT = Path(__file__).resolve().parents[1]
RECORD = ROOT / "benchmarks" / "results" / "amd-epyc-25-17.json"
PICTURE = ROOT / "docs" / "pictures" / "speed.png"
BARS = {  # comparison: label, from the top down
    "train": "train: pairs of sentences (MRPC)",
    "train-half": "train: the same in bfloat16",
    "squad": "train: question answering (SQuAD)",
    "tagging": "train: tags (CoNLL-2003)",
    "options": "train: multiple choice (SWAG)",
    "similarity": "train: embeddings (STS-B)",
    "pretraining": "pre-train",
    "predict": "predict: pairs of sentences",
    "predict-half": "predict: the same in bfloat16",
    "encode": "encode: texts to embeddings",
}
_COLOURS = {"train": "#2a6f97", "pre-train": "#2a6f97"}
_OTHER_COLOUR = "#89a9bd"


def comparisons(record: Mapping[str, Any]) -> dict[str, Mapping[str, Any]]:
    """Returns the comparisons of the chart by name, in its order."""
    by_name = {comparison["name"]: comparison for comparison in record["comparisons"]}
    return {name: by_name[name] for name in BARS}


def ratio(comparison: Mapping[str, Any]) -> Mapping[str, float]:
    """Returns the ratio of this package's first row to the baseline: median, lowest, highest."""
    return next(row["ratio"] for row in comparison["rows"] if row["library"] == "bert_tf" and "ratio" in row)


def conditions(record: Mapping[str, Any]) -> str:
    """Returns the conditions of the figures, in two lines."""
    drawn = list(comparisons(record).values())
    measured = drawn[0]["measured"]
    peer = next(row["versions"] for row in drawn[0]["rows"] if row["library"] == "transformers")
    versions = f"TensorFlow {measured['versions']['tensorflow']}, transformers {peer['transformers']}, PyTorch {peer['torch']}"
    days = sorted({comparison["measured"]["date"][:10] for comparison in drawn})
    cpu = record["cpu"]
    return (
        f"{cpu['name']}, family {cpu['family']}, model {cpu['model']} ({cpu['note']}),"
        f" {measured['machine']['cores']} shared cores; {versions}\n"
        f"BERT of 22.7 M parameters. Median of {measured['settings']['rounds']} alternating rounds; lines: lowest to highest."
        f" {' to '.join((days[0], days[-1]))}"
    )


def draw(record: Mapping[str, Any], path: Path) -> None:
    """Draws the chart."""
    figure = require_matplotlib().Figure(figsize=(9, 4.4), layout="constrained")
    axes = figure.subplots()
    drawn = comparisons(record)
    for place, (name, comparison) in enumerate(drawn.items()):
        values = ratio(comparison)
        median = values["median"]
        spread = [[median - values["lowest"]], [values["highest"] - median]]
        colour = _COLOURS.get(BARS[name].partition(":")[0], _OTHER_COLOUR)
        axes.barh(place, median, xerr=spread, color=colour, height=0.7, error_kw={"ecolor": "#333333", "lw": 1})
        axes.text(0.08, place, f"{median:.2f}", va="center", color="white", fontsize="small", fontweight="bold")
    axes.axvline(1, color="#333333", lw=1, ls="--")
    axes.set_yticks(range(len(drawn)), [BARS[name] for name in drawn])
    axes.invert_yaxis()
    axes.set_title("Speed relative to transformers on two CPU cores (dashed: equal; higher is better)", fontsize="medium")
    axes.set_xlabel(conditions(record), fontsize="x-small", color="#444444")
    axes.spines[["top", "right"]].set_visible(False)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, format="png", dpi=110)


if __name__ == "__main__":
    draw(json.loads(RECORD.read_text(encoding="utf-8")), PICTURE)
