"""PyTorch whose CUDA device is the CPU, so that a program for a GPU gives its tensors to a simulated one."""

from __future__ import annotations

from contextlib import nullcontext
from functools import wraps
from typing import Any

import torch
import torch.nn.attention
from torch.overrides import TorchFunctionMode

from gpulab.simulator import device as devices


def _on_host(device: Any) -> Any:
    named = str(device)
    return "cpu" if named.startswith("cuda") or named.isdigit() else device


class _OnHost(TorchFunctionMode):
    def __torch_function__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = dict(kwargs or {})
        if "device" in kwargs:
            kwargs["device"] = _on_host(kwargs["device"])
        if kwargs.get("pin_memory"):
            kwargs["pin_memory"] = False
        name = getattr(function, "__name__", "")
        if name in ("cuda", "pin_memory"):
            return args[0]
        if name == "to":
            args = tuple(_on_host(a) if isinstance(a, str | torch.device) else a for a in args)
        return function(*args, **kwargs)


class _Stream:
    cuda_stream, device = 0, torch.device("cpu")

    def __init__(self, *args: Any, **options: Any):
        pass

    def synchronize(self) -> None:
        pass

    wait_stream = record_event = lambda self, *args: None


class _Event:
    def __init__(self, *args: Any, **options: Any):
        pass

    record = synchronize = wait = lambda self, *args: None

    def elapsed_time(self, other: Any) -> float:
        return float("nan")


class _Properties:
    @property
    def multi_processor_count(self) -> int:
        return int(devices.current().gpu.sms)

    name = property(lambda self: devices.current().gpu.product)
    major = property(lambda self: devices.current().cc[0])
    minor = property(lambda self: devices.current().cc[1])


def install() -> None:
    """Make it so in this process, for good."""
    _OnHost().__enter__()
    answers: dict[str, Any] = {
        "is_available": lambda: True,
        "is_initialized": lambda: True,
        "init": lambda: None,
        "synchronize": lambda *_: None,
        "empty_cache": lambda: None,
        "device_count": lambda: 1,
        "current_device": lambda: 0,
        "set_device": lambda *_: None,
        "manual_seed": lambda *_: None,
        "manual_seed_all": lambda *_: None,
        "current_stream": lambda *_: _Stream(),
        "default_stream": lambda *_: _Stream(),
        "stream": lambda *_: nullcontext(),
        "Stream": _Stream,
        "Event": _Event,
        "get_device_capability": lambda *_: devices.current().cc,
        "get_device_name": lambda *_: devices.current().gpu.product,
        "get_device_properties": lambda *_: _Properties(),
    }
    for name, answer in answers.items():
        setattr(torch.cuda, name, answer)
    # It names backends that only a GPU has.
    torch.nn.attention.sdpa_kernel = wraps(torch.nn.attention.sdpa_kernel)(lambda *_, **__: nullcontext())
    torch.Tensor.cuda = lambda self, *_, **__: self  # type: ignore[assignment,method-assign]
    torch.Tensor.is_cuda = property(lambda self: True)  # type: ignore[assignment]
