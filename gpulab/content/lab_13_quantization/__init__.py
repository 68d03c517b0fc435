"""Lab 13: its exercises."""
