"""Keeps what TensorFlow says about itself out of a user's log."""

from __future__ import annotations

import logging
import os
import warnings


def quiet_before_import() -> None:
    """Silences the C++ side; takes effect only before TensorFlow is imported. A variable set by the user stays."""
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")


def quiet_python() -> None:
    """Silences start-up notes and deprecation warnings of the Python side; errors stay."""
    for name in ("tensorflow", "h5py"):
        logging.getLogger(name).setLevel(logging.ERROR)
    warnings.filterwarnings("ignore", module=r"(tensorflow|tensorflow_estimator|keras|absl)(\.|$)")
