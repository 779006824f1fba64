"""Speed and memory of this package compared with others: workers that take turns, and a report on requirements.

It belongs to a clone, with its results, and is not installed with the package: python -m bert_tf benchmark
"""

from __future__ import annotations

from pathlib import Path

PROJECT = Path(__file__).resolve().parents[1]
