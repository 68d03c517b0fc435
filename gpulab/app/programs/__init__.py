"""Programs of any author on the simulated GPU: what ``gpulab run`` does.

`imports` leads their imports of CUDA packages to the faces, `torch_cuda` makes PyTorch's "cuda" device mean
the CPU, and `ledger` counts their launches for the report and for budgets.
"""
