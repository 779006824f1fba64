"""Sentences and pairs: classification, regression and multi-label."""
