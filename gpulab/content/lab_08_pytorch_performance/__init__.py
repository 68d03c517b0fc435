"""Lab 08: its exercises."""
