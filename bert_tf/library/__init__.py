"""The package as a library: what `import bert_tf` offers programs and notebooks."""

from bert_tf.runtime import noise

noise.quiet_for_programs()
