"""Lab 20: its exercises."""
