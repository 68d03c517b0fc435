"""Matrix products on their way, which warpgroups have asked for and not waited for, as records."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

Array = np.ndarray


@dataclass
class Product:
    """What ``wgmma.mma_async`` at `index` asked for. `waiting` (B, G) are the warpgroups whose product has
    not been made yet; `group` (B, G) is the warpgroup's own count; `finish` makes it for some of them, and
    writes it to the register `slots`."""

    index: int
    waiting: Array
    group: Array
    slots: frozenset[int | None]
    finish: Callable[[Array], None]


@dataclass
class Products:
    """The products of one chunk. `group` (B, G) is the number of groups that each warpgroup has committed."""

    group: Array
    pending: list[Product] = field(default_factory=list)
