"""What a user can ask for: one file each."""
