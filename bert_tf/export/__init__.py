"""Exports trained models to formats of other software; `formats.FORMATS` has a row for each."""
