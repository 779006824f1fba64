"""Trained models as what other software runs; a row of `formats.FORMATS` each."""
