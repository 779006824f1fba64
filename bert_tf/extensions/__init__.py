"""Features that the core does not know, see `bert_tf.extension`: each folder can be deleted, with all that it adds."""
