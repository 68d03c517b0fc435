"""Lab 17: its exercises."""
