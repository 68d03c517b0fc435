"""Lab 01: its exercises."""
