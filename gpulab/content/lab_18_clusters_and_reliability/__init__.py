"""Lab 18: its exercises."""
