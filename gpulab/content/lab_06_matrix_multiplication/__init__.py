"""Lab 06: its exercises."""
