"""Lab 14: its exercises."""
