"""The page of a run: what it reached, how it learned, where time went; or several runs side by side."""
