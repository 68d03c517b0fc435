"""Measured time on a GPU, for what passed: `stage` does the whole of it, `protocol` times one answer."""
