"""Lab 07: its exercises."""
