"""Multiple choice: questions with several options, one of them right."""
