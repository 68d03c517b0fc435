"""Programs of any author on the simulated GPU: what ``gpulab run`` does.

`simulation` makes a process simulate a GPU: `imports` leads its imports of CUDA packages to the faces, and
`torch_cuda` makes PyTorch's "cuda" device mean the CPU; `scaled_products` and `tf32` multiply there as a GPU
does. `ledger` counts launches for the report, for budgets and for the snapshots of
`gpulab.app.pytest_plugin`.
"""
