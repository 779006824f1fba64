"""Command lines: flags, names and actions, and how a command begins and ends."""
