"""Lab 22: its exercises."""
