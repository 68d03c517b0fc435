"""Lab 10: its exercises."""
