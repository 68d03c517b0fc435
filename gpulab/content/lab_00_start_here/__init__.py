"""Lab 00: its exercises."""
