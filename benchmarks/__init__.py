"""Speed and memory of this package beside others: workers that take turns, and a report on what was required.

It stands in a clone beside its results, and is not installed with the package: python -m bert_tf benchmark
"""

from __future__ import annotations

from pathlib import Path

PROJECT = Path(__file__).resolve().parents[1]
