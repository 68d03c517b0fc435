"""Lab 09: its exercises."""
