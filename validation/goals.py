"""What the model is to reach on a GPU. Constants; `compare` says how far it is, the tests hold it to them."""

EXACT = 0.95  # share of kernel × metric pairs of memory and banks that are equal
SASS_ERROR = 0.03  # median, machine instructions
TIME_ERROR = 0.20  # mean, time with the launch
RANKS = 0.95  # Kendall's τ-b of the same times
DRAM_ERROR = 0.10  # median, bytes
