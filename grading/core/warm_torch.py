"""The same for labs whose replays need PyTorch, which takes its time."""

from __future__ import annotations

from gpulab.checks import tensor_graphs

tensor_graphs.prepare()
