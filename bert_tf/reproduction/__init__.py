"""Compares a published run's figures with your own run's."""
