"""Floating-point formats as data: how many bits for what, and which codes are no numbers.

Sources: IEEE 754-2019 (FP64, FP32, FP16); Micikevicius et al., "FP8 Formats for Deep Learning", 2022 (E4M3,
E5M2); Noune et al., "8-bit Numerical Formats for Deep Neural Networks", 2022 (the FNUZ variants); OCP
Microscaling Formats (MX) Specification v1.0, 2023 (E8M0, FP6, FP4); NVIDIA A100 white paper, 2020 (TF32).
"""

from __future__ import annotations

from dataclasses import dataclass
from difflib import get_close_matches
from typing import Literal

# Which codes are not finite numbers.
#   ieee    the top exponent: infinity for mantissa 0, NaN for all others
#   top     the one code with all bits set but the sign is NaN; no infinity
#   zero    the code of minus zero is NaN; no infinity, no minus zero
#   none    every code is a number
Specials = Literal["ieee", "top", "zero", "none"]


@dataclass(frozen=True)
class Format:
    """A floating-point format: sign, `exponent` and `mantissa` bits, most significant first.

    A code with exponent field e > 0 and mantissa field m means ±2^(e − `bias`) · (1 + m/2^mantissa); with
    e = 0 ±2^(1 − bias) · m/2^mantissa (**subnormal**). E8M0 has no sign, no mantissa and no subnormals: e = 0
    means 2^(−bias). `storage` is how many bits an element takes in memory where that is more than `bits`.
    """

    name: str
    exponent: int
    mantissa: int
    bias: int
    specials: Specials = "ieee"
    signed: bool = True
    storage: int = 0
    source: str = ""

    @property
    def bits(self) -> int:
        """Bits of a code."""
        return self.signed + self.exponent + self.mantissa

    @property
    def bytes(self) -> float:
        """Bytes that an element takes in memory."""
        return (self.storage or self.bits) / 8

    @property
    def subnormals(self) -> bool:
        """Whether exponent field 0 means zero and subnormal numbers."""
        return self.mantissa > 0

    @property
    def largest_code(self) -> int:
        """The code of the largest finite number."""
        top = (1 << (self.exponent + self.mantissa)) - 1
        match self.specials:
            case "ieee":
                return top - (1 << self.mantissa)
            case "top":
                return top - 1
        return top

    @property
    def largest(self) -> float:
        """The largest finite number."""
        field, fraction = divmod(self.largest_code, 1 << self.mantissa)
        return float(2.0 ** (field - self.bias) * (1 + fraction / (1 << self.mantissa)))

    @property
    def smallest_normal(self) -> float:
        """The smallest positive number with all its mantissa bits."""
        return float(2.0 ** ((1 if self.subnormals else 0) - self.bias))

    @property
    def smallest(self) -> float:
        """The smallest positive number."""
        return self.smallest_normal * 2.0**-self.mantissa

    @property
    def epsilon(self) -> float:
        """The distance from 1 to the next larger number."""
        return float(2.0**-self.mantissa)

    @property
    def nan_code(self) -> int | None:
        """A code that is NaN; None for formats that have none."""
        sign = 1 << (self.bits - 1)
        match self.specials:
            case "ieee":
                return self.largest_code + 1 + (1 << (self.mantissa - 1))
            case "top":
                return self.largest_code + 1
            case "zero":
                return sign
        return None

    @property
    def infinity_code(self) -> int | None:
        """The code of +infinity; None for formats that have none."""
        return self.largest_code + 1 if self.specials == "ieee" else None


_IEEE = "IEEE 754-2019"
_FP8 = "Micikevicius et al. 2022, arXiv:2209.05433"
_FNUZ = "Noune et al. 2022, arXiv:2206.02915"
_MX = "OCP Microscaling Formats v1.0, 2023"
_BF16 = "Kalamkar et al. 2019, arXiv:1905.12322"

FORMATS: dict[str, Format] = {
    f.name: f
    for f in (
        Format("FP64", 11, 52, 1023, source=_IEEE),
        Format("FP32", 8, 23, 127, source=_IEEE),
        Format("TF32", 8, 10, 127, storage=32, source="NVIDIA A100 white paper, 2020"),
        Format("BF16", 8, 7, 127, source=_BF16),
        Format("FP16", 5, 10, 15, source=_IEEE),
        Format("E5M2", 5, 2, 15, source=_FP8),
        Format("E4M3", 4, 3, 7, "top", source=_FP8),
        Format("E5M2FNUZ", 5, 2, 16, "zero", source=_FNUZ),
        Format("E4M3FNUZ", 4, 3, 8, "zero", source=_FNUZ),
        Format("E3M2", 3, 2, 3, "none", source=_MX),
        Format("E2M3", 2, 3, 1, "none", source=_MX),
        Format("E2M1", 2, 1, 1, "none", source=_MX),
        Format("E8M0", 8, 0, 127, "top", signed=False, source=_MX),
    )
}

# Other names of the same formats.
ALIASES = {
    "FLOAT64": "FP64",
    "FLOAT32": "FP32",
    "FLOAT16": "FP16",
    "HALF": "FP16",
    "BFLOAT16": "BF16",
    "E4M3FN": "E4M3",
    "FP8": "E4M3",
    "UE8M0": "E8M0",
    "FP4": "E2M1",
}


class UnknownFormat(LookupError):
    """There is no format of that name; the message names the closest."""


def find(name: str | Format) -> Format:
    """The format of that name, in either case. Raises UnknownFormat.

    >>> find("fp16").name
    'FP16'
    """
    if isinstance(name, Format):
        return name
    key = str(name).upper()
    key = ALIASES.get(key, key)
    if key in FORMATS:
        return FORMATS[key]
    close = get_close_matches(key, [*FORMATS, *ALIASES], n=3, cutoff=0.5) or list(FORMATS)
    raise UnknownFormat(f"there is no number format {name!r}; there is {', '.join(close)}")
