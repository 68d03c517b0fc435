"""``triton.experimental`` without a GPU: Gluon, whose kernels run in the simulator."""
