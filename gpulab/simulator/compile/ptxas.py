"""What ptxas makes of a kernel: registers, shared and local memory, spills. Needs no driver.

ptxas is part of NVIDIA's linker, which runs inside this process. PTX that no compiler wrote can crash it, so
PTX of unknown origin is linked in another process, and its results are looked up here by `linked_elsewhere`.
"""

from __future__ import annotations

import hashlib
import math
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from typing import TypeVar

from .extended import link_extended
from .kernel import Capability, CompileError, extends_shared
from .versions import architecture, no_code_for, supported_capabilities


@dataclass(frozen=True)
class Resources:
    """What one kernel takes. Registers and barriers are counts, all else is bytes.

    `registers`, `local_bytes` (local arrays, and registers that did not fit) and `spill_bytes` (the stores
    and loads for those registers) are per thread; `shared_bytes` is the static shared memory of a block,
    without what the system reserves; `const_bytes` holds the arguments and constants.
    """

    registers: int
    shared_bytes: int
    local_bytes: int
    spill_bytes: int = 0
    const_bytes: int = 0
    barriers: int = 0


# On 9.0, and on no other capability, the linker's figure for shared memory includes what the system takes of
# every block. The program ptxas, which `link_extended` asks, leaves it out.
RESERVED_SHARED_BYTES = 1024
INCLUDES_RESERVED: Capability = (9, 0)

REGISTERS_OF_SM, MOST_REGISTERS = 65536, 255  # and of a thread

# The figures in the linker's log, behind the kernel's name.
FIGURES = {
    "registers": r"used (\d+) registers",
    "barriers": r"used (\d+) barriers",
    "shared_bytes": r"(\d+) bytes smem",
    "const_bytes": r"(\d+) bytes cmem\[0\]",
    "local_bytes": r"(\d+) stack",
}
SPILLS = r"(\d+) bytes spill stores, (\d+) bytes spill loads"

REFUSED = "ptxas refuses the PTX: {reason}"
NO_RESULT = "ptxas came to no result on the PTX"

# What came of a kernel in another process: what was asked for, or why there is none.
Result = Resources | bytes | str
Wanted = TypeVar("Wanted", Resources, bytes)
_elsewhere: Mapping[str, Result] | None = None


def link_key(ptx: str, cc: Capability, entry: str = "", max_registers: int | None = None) -> str:
    """The name of one kernel's result in `linked_elsewhere`; machine code is of all entries, so of none."""
    return hashlib.sha256(f"{cc}\0{entry}\0{max_registers}\0{ptx}".encode()).hexdigest()


@contextmanager
def linked_elsewhere(results: Mapping[str, Result]) -> Iterator[None]:
    """Within it no PTX reaches the linker of this process: `resources` and `link` look into `results`.

    `results` are by `link_key`: of a kernel its resources, its machine code, or in words why there is no
    result. Without the result that is asked for, a kernel ends in a CompileError, as if ptxas refused it::

        with linked_elsewhere({link_key(ptx, (8, 0), "copy"): Resources(16, 0, 0)}):
            resources(ptx, (8, 0), "copy").registers  # 16
    """
    global _elsewhere
    before, _elsewhere = _elsewhere, results
    resources.cache_clear()
    try:
        yield
    finally:
        _elsewhere = before
        resources.cache_clear()


@lru_cache(maxsize=256)
def resources(
    ptx: str, cc: Capability = (8, 0), entry: str | None = None, max_registers: int | None = None
) -> Resources:
    """What ptxas reports for a kernel: registers, shared memory, local memory and spills.

    `ptx` is the text, `cc` the compute capability of the GPU, `entry` the name of the kernel (which may be
    left out if there is only one), `max_registers` a limit on registers per thread. Raises CompileError when
    ptxas refuses the PTX.

    >>> text = ".version 8.0 .target sm_80 .address_size 64 .visible .entry stop() { ret; }"
    >>> resources(text).spill_bytes
    0
    """
    entry = entry or _only_entry(ptx)
    if _elsewhere is not None:
        return _result(Resources, link_key(ptx, cc, entry, max_registers), entry)
    log, _ = link(ptx, cc, max_registers)
    used = _section(log, f"Function properties for '{entry}':")
    figures = {name: int(m[1]) for name, pattern in FIGURES.items() if (m := re.search(pattern, used))}
    if "registers" not in figures:
        raise CompileError(entry, f"ptxas did not say what the kernel takes:\n{log.strip()}")
    if cc == INCLUDES_RESERVED and figures["shared_bytes"] and not extends_shared(ptx):
        figures["shared_bytes"] -= RESERVED_SHARED_BYTES
    # Linked like this, ptxas ignores setmaxnreg, for which it would allot all that the kernel may have.
    figures["registers"] = registers_at_entry(ptx, entry, max_registers) or figures["registers"]
    spilled = re.search(SPILLS, _section(log, f"Function properties for {entry}\n"))
    return Resources(**figures, spill_bytes=int(spilled[1]) + int(spilled[2]) if spilled else 0)


def registers_at_entry(ptx: str, entry: str, max_registers: int | None = None) -> int | None:
    """The registers of each thread with which a kernel that has ``setmaxnreg`` starts.

    That is all that it may have, but no more than its largest ``setmaxnreg.inc`` asks for, as ptxas 13.3
    reports it.

    The kernel is `entry` of the text `ptx`; `max_registers` is a limit of the compiler's options. None for
    all other kernels, and where neither the kernel nor such a limit says how many: then ptxas ignores
    ``setmaxnreg``.

    >>> kernel = ".visible .entry k() .reqntid 384 .minnctapersm 1 { setmaxnreg.dec.sync.aligned.u32 24; }"
    >>> registers_at_entry(kernel, "k")
    168
    """
    kernel = ptx[ptx.index(f".entry {entry}") :].partition("\n}")[0]
    head, _, body = kernel.partition("{")
    if "setmaxnreg" not in body:
        return None
    asked = [int(n) for n in re.findall(r"\.maxnreg\s+(\d+)", head)] + [max_registers or 0]
    limit = min(filter(None, asked), default=0) or _share(head)
    if limit is None:
        return None
    taken = [int(n) for n in re.findall(r"setmaxnreg\.inc\.\S+\s+(\d+)", body)]
    return min(limit, max(taken, default=limit))


def _share(head: str) -> int | None:
    """The registers of each thread when as many blocks are on an SM as the kernel says; None if it says
    nothing of that."""
    threads = re.search(r"\.(?:req|max)ntid\s+(\d+(?:\s*,\s*\d+)*)", head)
    blocks = re.search(r"\.minnctapersm\s+(\d+)", head)
    if threads is None or blocks is None:
        return None
    block = math.prod(int(n) for n in threads[1].split(","))
    return min(REGISTERS_OF_SM // (block * int(blocks[1])) // 8 * 8, MOST_REGISTERS)


def _result(kind: type[Wanted], key: str, entry: str) -> Wanted:
    """What came back from elsewhere. Raises CompileError."""
    found = (_elsewhere or {}).get(key, NO_RESULT)
    if isinstance(found, kind):
        return found
    raise CompileError(entry, found if isinstance(found, str) else NO_RESULT)


def _only_entry(ptx: str) -> str:
    names = re.findall(r"\.entry\s+([\w$]+)", ptx)
    if len(names) != 1:
        raise ValueError(f"say which kernel: the PTX holds {len(names)} ({', '.join(names)})")
    return str(names[0])


def _section(log: str, heading: str) -> str:
    """The text behind a heading, up to the next one."""
    _, _, rest = log.partition(heading)
    return rest.split("Function properties", 1)[0]


def link(ptx: str, cc: Capability, max_registers: int | None = None) -> tuple[str, bytes]:
    """The log of turning `ptx` into machine code, and the machine code (a cubin).

    The log is empty where the code was made elsewhere. Raises CompileError when ptxas refuses the PTX.
    """
    if _elsewhere is not None:
        return "", _result(bytes, link_key(ptx, cc, max_registers=max_registers), _first_entry(ptx))
    from cuda.bindings import nvjitlink

    if cc not in supported_capabilities():
        raise CompileError(_first_entry(ptx), no_code_for(cc))
    if extends_shared(ptx):
        made = link_extended(ptx, cc, max_registers)
        if isinstance(made, str):
            raise CompileError(_first_entry(ptx), REFUSED.format(reason=made))
        return made
    options = [f"-arch=sm_{architecture(cc)}", "-verbose", "-lineinfo"]
    if max_registers:
        options.append(f"-maxrregcount={max_registers}")
    code = ptx.encode()
    linker = nvjitlink.create(len(options), options)
    try:
        nvjitlink.add_data(linker, nvjitlink.InputType.PTX, code, len(code), "kernel.ptx")
        nvjitlink.complete(linker)
        cubin = bytearray(nvjitlink.get_linked_cubin_size(linker))
        nvjitlink.get_linked_cubin(linker, cubin)
        return _text(nvjitlink.get_info_log, linker, nvjitlink.get_info_log_size(linker)), bytes(cubin)
    except nvjitlink.nvJitLinkError as error:
        reason = _text(nvjitlink.get_error_log, linker, nvjitlink.get_error_log_size(linker)).strip()
        raise CompileError(_first_entry(ptx), REFUSED.format(reason=reason or error)) from None
    finally:
        nvjitlink.destroy(linker)


def _first_entry(ptx: str) -> str:
    found = re.search(r"\.entry\s+([\w$]+)", ptx)
    return found[1] if found else "a kernel"


def _text(read: object, linker: int, size: int) -> str:
    buffer = bytearray(size)
    read(linker, buffer)  # type: ignore[operator]
    return buffer.decode(errors="replace").rstrip("\0")
