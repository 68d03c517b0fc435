"""What the labs are about besides kernels: number formats, models, several ranks, serving."""
