"""Number formats of deep learning: exact codecs, block formats, Hadamard rotation, on NumPy arrays.

codes = numerics.encode(x, "E4M3")        # float32 → uint8, to the nearest, ties to even
numerics.decode(codes, "E4M3")            # uint8 → float32, exact
numerics.quantize(x, "BF16")              # both
numerics.encode_blocks(x, "MXFP4")        # 32 elements with one scale → Blocks
"""

from .block_formats import BLOCK_FORMATS, BlockFormat, Blocks, encode_blocks
from .codecs import decode, encode, neighbours, quantize, representable
from .formats import FORMATS, Format, UnknownFormat, find
from .hadamard import hadamard
from .packing import pack, unpack

__all__ = [
    "BLOCK_FORMATS",
    "FORMATS",
    "BlockFormat",
    "Blocks",
    "Format",
    "UnknownFormat",
    "decode",
    "encode",
    "encode_blocks",
    "find",
    "hadamard",
    "neighbours",
    "pack",
    "quantize",
    "representable",
    "unpack",
]
