"""Lab 03: its exercises."""
