"""Finds likely mistakes in labelled data: labels, duplicates, leaks, outliers; as a table to correct and a page to browse."""
