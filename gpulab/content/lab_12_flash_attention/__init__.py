"""Lab 12: its exercises."""
