"""Lab 24: the tensor cores of Hopper (part A) and Blackwell (part B)."""
