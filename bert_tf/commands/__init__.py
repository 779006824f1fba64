"""One module for each command; the only readers of flags."""
