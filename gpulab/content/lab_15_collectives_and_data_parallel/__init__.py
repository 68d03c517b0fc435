"""Lab 15: its exercises."""
