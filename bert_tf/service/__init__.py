"""Serves a trained model over HTTP: one listening process, worker processes, and a queue between them."""
