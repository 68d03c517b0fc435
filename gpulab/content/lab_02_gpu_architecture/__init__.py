"""Lab 02: its exercises."""
