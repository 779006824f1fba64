"""Stands for `bert_tf.native.check` where a library computes something else."""

import sys

sys.stderr.write(input() + "\n")
sys.exit("GELU is off by 3")
