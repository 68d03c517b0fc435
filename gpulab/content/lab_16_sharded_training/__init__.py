"""Lab 16: its exercises."""
