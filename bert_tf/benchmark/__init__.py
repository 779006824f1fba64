"""Speed and memory of this package beside others: workers that take turns, and a report on what was required."""
