"""Questions with several options, of which one is right."""
