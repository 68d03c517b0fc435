"""Lab 04: its exercises."""
