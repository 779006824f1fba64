"""Files and streams: reading, atomic writing, JSON and YAML, locks, logs, progress bars and tables as text."""
