"""All GPUs by name."""

from __future__ import annotations

from difflib import get_close_matches

from gpulab.foundation.errors import Message

from .ada import L4, L40, L40S, RTX4090
from .ampere import A10, A100, A100_40, A100_PCIE, A100_PCIE_40, AGX_ORIN, RTX3090
from .blackwell import AGX_THOR, B200, B300, GB10, GB200, GB300, PRO_6000, RTX5080, RTX5090
from .gpu import GPU
from .hopper import H100, H100_NVL, H100_PCIE, H200, H200_NVL
from .turing import T4
from .volta import V100

ALL: tuple[GPU, ...] = (
    V100,
    T4,
    A100_PCIE_40,
    A100_40,
    A100_PCIE,
    A100,
    H100_PCIE,
    H100_NVL,
    H100,
    H200_NVL,
    H200,
    B200,
    GB200,
    B300,
    GB300,
    A10,
    L4,
    L40,
    L40S,
    RTX3090,
    RTX4090,
    RTX5080,
    RTX5090,
    PRO_6000,
    AGX_ORIN,
    AGX_THOR,
    GB10,
)


class UnknownGPU(Message, LookupError):
    """No GPU has that name. The message is one line that says which names there are."""


def names() -> list[str]:
    """The names of all GPUs, as `find` takes them.

    >>> "H100" in names()
    True
    """
    return [gpu.name for gpu in ALL]


def find(name: str | GPU) -> GPU:
    """The GPU of that name or alias; case, blanks, dashes and underscores do not matter.

    A GPU is returned as it is. Raises UnknownGPU.

    >>> find("a100").name
    'A100'
    """
    if isinstance(name, GPU):
        return name
    wanted = _plain(name)
    if wanted in _BY_NAME:
        return _BY_NAME[wanted]
    close = get_close_matches(wanted, _BY_NAME, n=1)
    hint = f"; did you mean {_BY_NAME[close[0]].name}?" if close else ";"
    raise UnknownGPU(f"no GPU is named {name!r}{hint} known are {', '.join(names())}")


def _plain(name: str) -> str:
    bare = "".join(c for c in str(name).lower() if c.isalnum())
    return bare.removeprefix("nvidia")


_BY_NAME: dict[str, GPU] = {
    _plain(alias): gpu for gpu in ALL for alias in (gpu.name, gpu.product, *gpu.aliases)
}
