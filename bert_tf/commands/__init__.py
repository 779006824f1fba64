"""The commands, one module each; nothing else reads flags."""
