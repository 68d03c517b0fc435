"""The whole corpus, in both languages."""

from . import NUMBA, in_cuda_c

ALL = [*NUMBA, *in_cuda_c.PAIRS]
