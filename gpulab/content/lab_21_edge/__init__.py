"""Lab 21: its exercises."""
