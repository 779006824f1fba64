"""How a pretrained encoder is adapted in training: which variables are trained, and what is added to its products."""

from __future__ import annotations

import tensorflow as tf


class Adaptation:
    """Trains all variables and adds nothing; an extension may override both."""

    def adapted(self, product: tf.Tensor, x: tf.Tensor) -> tf.Tensor:
        """Returns the product [N, E] of rows `x` [N, D] with the matrix of the current variable scope, with additions.

        Variables that it gets are in that scope.
        """
        del x
        return product

    def trains(self, variable: str) -> bool:
        """Whether a variable changes and is saved; any other one keeps the value of the initial checkpoint."""
        del variable
        return True


WHOLE = Adaptation()
