"""Settings of question answering; names and defaults are the published ones (google-research/bert run_squad.py)."""

from __future__ import annotations

import dataclasses

from bert_tf.settings import setting


@dataclasses.dataclass(frozen=True)
class SpanSettings:
    """Settings of windows and of answer decoding."""

    predict_file: str | None = setting(None, "--dev_file and --test_file in one, as published")
    doc_stride: int = setting(128, "word pieces from one window of a long paragraph to the next", lowest=1)
    max_query_length: int = setting(64, "longest question in word pieces; what is beyond is cut off", lowest=1)
    n_best_size: int = setting(20, "answers to each question that nbest_predictions.json lists", lowest=1)
    max_answer_length: int = setting(30, "longest answer in word pieces", lowest=1)
    version_2_with_negative: bool = setting(False, "some questions have no answer; SQuAD2 has it on")
    null_score_diff_threshold: float = setting(0.0, "no answer where its score is above the best by more than this")
