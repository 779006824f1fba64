"""A trained model behind HTTP: one process that listens, others that compute, a queue between them"""
