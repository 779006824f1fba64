"""The package as a library: what `import bert_tf` offers programs and notebooks."""
