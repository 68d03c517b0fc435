"""Lab 05: its exercises."""
