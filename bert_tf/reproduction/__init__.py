"""Compares a published run's figures with those of a run here."""
