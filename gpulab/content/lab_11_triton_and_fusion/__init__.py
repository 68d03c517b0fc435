"""Lab 11: its exercises."""
