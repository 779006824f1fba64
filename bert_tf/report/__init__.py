"""The report page of a run: results, curves, time and memory; or several runs side by side."""
