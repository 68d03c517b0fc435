"""Lab 19: its exercises."""
