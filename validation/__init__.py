"""Holds counts and modelled times against a GPU: kernels, what Nsight Compute says of them, what we say.

`python -m validation` says what it can do; `docs/validation.md` says how to measure a GPU.
"""
