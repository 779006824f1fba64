"""Many runs in one command: their plan, the processes that train them, and their table."""
