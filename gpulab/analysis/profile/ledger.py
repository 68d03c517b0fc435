"""The ledger of a tensor program: every operation that PyTorch carries out, its FLOPs, bytes, launches and
memory.

It listens to PyTorch's dispatcher, below autograd, so it sees what would be launched on a GPU: forward,
backward and optimiser alike, on real tensors and on fake ones (shapes without data). Counted is what an
eager program asks for: each operation reads its inputs and writes its outputs once, caches and fusion
aside. What goes past the dispatcher it cannot hear: `print`, `.tolist()` and `.numpy()`, and `.cpu()` of
what is on the CPU already.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    import torch

# What PyTorch asks itself.
BOOKKEEPING = frozenset({"prim", "profiler"})
# Operations that only make or name memory. `empty` and its kind allocate and write nothing.
SILENT = frozenset(
    {
        "empty",
        "empty_like",
        "empty_strided",
        "new_empty",
        "new_empty_strided",
        "resize_",
        "set_",
        "lift_fresh",
        "_unsafe_view",
    }
)
# Outputs that do not depend on what was there: the target of these is written and not read.
OVERWRITES = frozenset(
    {"copy_", "fill_", "zero_", "normal_", "uniform_", "random_", "bernoulli_", "exponential_"}
)
# Outputs that take nothing but shape and type from the input.
FACTORIES = frozenset(
    {"ones_like", "zeros_like", "full_like", "rand_like", "randn_like", "new_zeros", "new_ones", "new_full"}
)
# Of the first argument only as much is read as the output holds.
GATHERS = frozenset({"embedding", "index", "index_select", "gather", "take"})
# Multi-tensor reductions: blocks leave partial results, one more launch adds them up (ForeachReduceOp.cu).
IN_TWO_STEPS = frozenset({"_foreach_norm", "_foreach_max"})
# The host waits for a number from the device. `_syncs` adds masks as indices and copies to the host.
SYNCS = frozenset(
    {
        "_local_scalar_dense",
        "nonzero",
        "is_nonzero",
        "equal",
        "masked_select",
        "bincount",
        "_unique2",
        "unique_dim",
        "unique_consecutive",
    }
)
# One operation per input element, besides those that PyTorch tags as pointwise (one per output element).
REDUCTIONS = frozenset(
    {
        "sum",
        "mean",
        "amax",
        "amin",
        "max",
        "min",
        "prod",
        "norm",
        "linalg_vector_norm",
        "var",
        "std",
        "var_mean",
        "logsumexp",
    }
)
# FLOPs per element of operations that are several in one: counted from their definitions.
PER_ELEMENT = {
    "_softmax": 4,  # maximum, subtract and exponential, sum, divide
    "_log_softmax": 4,
    "_softmax_backward_data": 3,
    "_log_softmax_backward_data": 3,
    "native_layer_norm": 7,  # mean, centre, square, sum, scale, weight, bias
    "native_layer_norm_backward": 11,
    "gelu": 8,
    "gelu_backward": 14,
    "native_dropout": 2,
    "addcmul": 2,  # a product and a sum; a factor that is not 1 is one more
    "addcdiv": 2,
    "lerp": 3,  # difference, product, sum
}

# Tensors that one launch puts side by side (CAT_ARRAY_BATCH_SIZE, ATen/native/cuda/Shape.cu).
SIDE_BY_SIDE = 128
# How PyTorch's multi-tensor kernels (`_foreach_…`, `_fused_…`) are cut into launches: at most so many tensors
# for 1, 2, 3 … lists, and at most so many blocks of CHUNK elements (ATen/native/cuda/MultiTensorApply.cuh,
# for kernels with 4 KB of arguments; some builds pass 32 KB and take seven times as many).
TENSORS_PER_LAUNCH = (110, 64, 48, 36, 30)
BLOCKS_PER_LAUNCH = 320
CHUNK = 65_536


@dataclass(frozen=True)
class Entry:
    """One operation. Sizes in bytes; `shapes` are those of the tensors read; `memory` is what the program
    holds after it.

    `flops` counts a multiply-add as two; `matrix_flops` is the part that matrix products and convolutions do.
    """

    op: str
    shapes: tuple[tuple[int, ...], ...]
    dtype: str
    flops: int
    matrix_flops: int
    bytes_read: int
    bytes_written: int
    launches: int
    syncs: int
    memory: int

    @property
    def bytes(self) -> int:
        """Bytes moved."""
        return self.bytes_read + self.bytes_written


def tensors_in(values: Any) -> Iterator[torch.Tensor]:
    """All tensors in nested lists, tuples and dicts."""
    import torch

    if isinstance(values, torch.Tensor):
        yield values
    elif isinstance(values, list | tuple):
        for value in values:
            yield from tensors_in(value)
    elif isinstance(values, dict):
        yield from tensors_in(list(values.values()))


def extent_bytes(tensor: torch.Tensor) -> int:
    """Bytes that a tensor's elements take in memory; an expanded axis (stride 0) counts once."""
    elements = 1
    for size, stride in zip(tensor.shape, tensor.stride(), strict=True):
        elements *= 1 if stride == 0 and size > 0 else size
    return int(elements * tensor.element_size())


def foreach_launches(sizes: list[int], lists: int) -> int:
    """Launches of a multi-tensor operation over `lists` lists of tensors with these numbers of elements."""
    most = TENSORS_PER_LAUNCH[min(lists, len(TENSORS_PER_LAUNCH)) - 1]
    launches, tensors, blocks = 0, 0, 0
    for size in sizes:
        tensors += 1
        for _ in range(max(-(-size // CHUNK), 1)):
            blocks += 1
            if blocks == BLOCKS_PER_LAUNCH:
                launches, blocks, tensors = launches + 1, 0, 1
        if tensors == most:
            launches, blocks, tensors = launches + 1, 0, 0
    return launches + (blocks > 0)


class _Memory:
    """The bytes of storages made while the ledger was open and still in use, and those that were."""

    def __init__(self) -> None:
        self.live: dict[int, tuple[Any, int, int]] = {}
        self.dead: list[tuple[int, int, int]] = []
        self.now = 0  # operations so far

    def add(self, tensor: torch.Tensor) -> None:
        from torch.multiprocessing.reductions import StorageWeakRef

        storage = tensor.untyped_storage()
        reference = StorageWeakRef(storage)
        self.live.setdefault(reference.cdata, (reference, storage.nbytes(), self.now))

    def held(self) -> int:
        gone = [key for key, (reference, _, _) in self.live.items() if reference.expired()]
        for key in gone:
            _, nbytes, since = self.live.pop(key)
            self.dead.append((nbytes, since, self.now - 1))
        self.now += 1
        return sum(nbytes for _, nbytes, _ in self.live.values())

    def lives(self) -> list[tuple[int, int, int]]:
        alive = [(nbytes, since, self.now - 1) for _, nbytes, since in self.live.values()]
        return sorted((*self.dead, *alive), key=lambda life: life[1:])


def entry_of(
    func: Any, args: tuple[Any, ...], kwargs: dict[str, Any], out: Any, memory: int = 0
) -> Entry | None:
    """What one dispatched operation costs; None for views and for what only names memory."""
    import torch

    name = func._schema.name.partition("::")[2]
    if _is_view(func) or name in SILENT:
        return None
    read = list(tensors_in([args, {k: v for k, v in kwargs.items() if k != "out"}]))
    made = list(tensors_in(out))
    foreach = name.startswith(("_foreach_", "_fused_"))
    lists = [a for a in args if isinstance(a, list | tuple) and any(isinstance(t, torch.Tensor) for t in a)]
    two_steps = name in IN_TWO_STEPS
    depth = len(lists) + (
        bool(made) and not two_steps
    )  # lists that a multi-tensor kernel walks along, a new one of results too
    if foreach:
        made = made or _written(func, args, kwargs)
        depth -= name.startswith("_fused_")  # the step counts travel apart
    bytes_read = sum(map(extent_bytes, read))
    if name in OVERWRITES and read:
        bytes_read -= extent_bytes(read[0])
    if name in FACTORIES:
        bytes_read = 0
    if name in GATHERS and read and made:
        bytes_read += extent_bytes(made[0]) - extent_bytes(read[0])
    bytes_written = sum(map(extent_bytes, made))
    matrix = _matrix_flops(func, args, kwargs, out)
    launches = 1
    if foreach:
        launches = foreach_launches([t.numel() for t in lists[0]], depth) + two_steps if lists else 1
    elif name in ("cat", "stack"):
        launches = -(-len(read) // SIDE_BY_SIDE)
    elif name == "_local_scalar_dense" or _to_the_host(name, read, made) or not (read or made):
        launches = 0  # a copy to the host
    elif name in INDEXING:
        launches += _masks(args)  # each becomes positions first: a `nonzero`
    return Entry(
        op=name,
        shapes=tuple(tuple(t.shape) for t in read),
        dtype=str((made or read)[0].dtype).removeprefix("torch.") if made or read else "",
        flops=matrix or _plain_flops(func, name, read, made, args, kwargs),
        matrix_flops=matrix,
        bytes_read=bytes_read,
        bytes_written=bytes_written,
        launches=launches,
        syncs=_syncs(name, args, kwargs, read, made),
        memory=memory,
    )


INDEXING = frozenset({"index", "index_put", "index_put_"})


def _masks(args: tuple[Any, ...]) -> int:
    """Boolean tensors among the indices of `x[…]`. A single number is put under a mask without them."""
    import torch

    indices = list(tensors_in(args[1]))
    if len(args) > 2 and args[2].numel() == 1:
        return 0
    return sum(t.dtype in (torch.bool, torch.uint8) for t in indices)


def _to_the_host(name: str, read: list[Any], made: list[Any]) -> bool:
    """Whether it copies from a device to the host."""
    if name not in ("_to_copy", "copy_") or not read or not made:
        return False
    return bool(made[0].device.type == "cpu" and read[-1].device.type != "cpu")


def _syncs(name: str, args: tuple[Any, ...], kwargs: dict[str, Any], read: list[Any], made: list[Any]) -> int:
    if name in INDEXING:
        return _masks(args)
    if _to_the_host(name, read, made):
        return int(not (kwargs.get("non_blocking") or (name == "copy_" and len(args) > 2 and args[2])))
    if name == "repeat_interleave":  # the size of the result is the sum of the repeats
        return int(kwargs.get("output_size") is None)
    return int(name in SYNCS)


def _is_composite(func: Any) -> bool:
    """Whether PyTorch defines it as a sequence of other operations, derivative included."""
    import torch

    key = "CompositeImplicitAutograd"
    return bool(func.namespace == "aten" and torch._C._dispatch_has_kernel_for_dispatch_key(func.name(), key))


def _written(func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> list[Any]:
    """The tensors that an in-place operation says it writes.

    A fused optimiser writes gradients only where it takes a scale out of them.
    """
    kept = {"grads"} if kwargs.get("grad_scale") is None else set()
    return [
        tensor
        for given, asked in zip(args, func._schema.arguments, strict=False)
        if asked.alias_info is not None and asked.alias_info.is_write and asked.name not in kept
        for tensor in tensors_in(given)
    ]


# Products with a vector, and which argument has as many elements as there are multiply-adds.
WITH_VECTORS = {"aten::mv": 0, "aten::dot": 0, "aten::vdot": 0, "aten::addmv": 1}


def _is_view(func: Any) -> bool:
    """Whether the result shares its input's memory and nothing is written."""
    returns = func._schema.returns
    aliases = [r.alias_info for r in returns if r.alias_info is not None]
    return bool(aliases) and len(aliases) == len(returns) and not any(alias.is_write for alias in aliases)


def _matrix_flops(func: Any, args: tuple[Any, ...], kwargs: dict[str, Any], out: Any) -> int:
    """FLOPs of matrix products, convolutions and attention, by PyTorch's own formulas. PyTorch has none for
    products with vectors and for triangular systems, in which products of matrices can be written."""
    from torch.utils.flop_counter import flop_registry

    if (factor := WITH_VECTORS.get(func._schema.name)) is not None:
        return 2 * int(args[factor].numel())
    if func._schema.name == "aten::linalg_solve_triangular":
        return int(out.numel() * args[0].shape[-1])  # half of the matrix is 0
    formula: Callable[..., int] | None = flop_registry.get(func._overloadpacket)
    if formula is None:
        return 0
    return int(formula(*args, **kwargs, out_val=out))


def _plain_flops(
    func: Any, name: str, read: list[Any], made: list[Any], args: tuple[Any, ...], given: dict[str, Any]
) -> int:
    import torch

    outputs = sum(t.numel() for t in made if t.is_floating_point() or t.dtype == torch.bool)
    base = name.rstrip("_")
    elements = sum(t.numel() for t in made) if base.startswith("_foreach") else made[0].numel() if made else 0
    single = base.removeprefix("_foreach_")
    fourth = args[3] if base.startswith("_foreach_addc") and len(args) > 3 else 1
    scaled = given.get("value", given.get("alpha", fourth)) != 1
    if single in PER_ELEMENT:
        return int((PER_ELEMENT[single] + scaled) * elements)
    if base in REDUCTIONS:
        return max((t.numel() for t in read), default=0)
    moved = base in ("copy", "clone", "_to_copy", "fill", "zero", "where", "cat", "stack")
    if torch.Tag.pointwise in func.tags and not moved:
        return int((1 + scaled) * outputs)
    if base.startswith("_foreach"):
        return int((1 + scaled) * elements)
    return 0


class Listener(Protocol):
    """One more listener, called for every operation."""

    def before(
        self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """Gives the arguments that the operation is carried out on. Whatever it raises stops the program."""
        ...

    def after(self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any], out: Any) -> None:
        """Gets what came out."""
        ...


def ledger(listener: Listener | None = None) -> Any:
    """A context manager that records: ``with ledger() as book: …`` and then ``book.entries``.

    `entries` is a list of `Entry` in the order of dispatch, `peak` the most bytes that the program held at
    once beyond what it was given. It may be opened again and goes on where it was.
    """
    from torch.utils._python_dispatch import TorchDispatchMode

    class Ledger(TorchDispatchMode):
        def __init__(self) -> None:
            super().__init__()
            self.entries: list[Entry] = []
            self.peak = 0
            self._memory = _Memory()

        def lives(self) -> list[tuple[int, int, int]]:
            """Each storage that was made: its bytes, and the first and last operation that saw it."""
            return self._memory.lives()

        def __torch_dispatch__(
            self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
        ) -> Any:
            given = kwargs or {}
            if func.namespace in BOOKKEEPING:
                return func(*args, **given)
            if _is_composite(func):  # arrives whole in inference mode; its parts are what is launched
                with self:
                    return func.decompose(*args, **given)
            if listener is not None:
                args, given = listener.before(func, args, given)
            known = {t.untyped_storage()._cdata for t in tensors_in([args, given])}
            out = func(*args, **given)
            for tensor in tensors_in(out):
                if tensor.untyped_storage()._cdata not in known:
                    self._memory.add(tensor)
            held = self._memory.held()
            self.peak = max(self.peak, held)
            entry = entry_of(func, args, given, out, held)
            if entry is not None:
                self.entries.append(entry)
            if listener is not None:
                listener.after(func, args, given, out)
            return out

    return Ledger()
