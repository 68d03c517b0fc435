"""gpulab: a course on GPU acceleration that needs no GPU."""

__version__ = "0.1.0"
