"""Files and streams: reading, complete or no writing, JSON and YAML, locks, logs, progress bars and tables as text."""
