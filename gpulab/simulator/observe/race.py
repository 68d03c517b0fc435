"""A data race in words: the two touches of one word, and the usual cure."""

from __future__ import annotations

from dataclasses import dataclass

from gpulab.simulator.ptx import Location
from gpulab.simulator.simt.errors import Index, source_text

# What a touch is; BLOCK_ATOMIC is an atomic of block scope (``.cta``), which other blocks do not honour.
# BULK is what a bulk copy writes, some time after it was sent; BULK_ATOMIC what a bulk reduction updates.
READ, WRITE, ATOMIC, BLOCK_ATOMIC, BULK, BULK_ATOMIC = 0, 1, 2, 3, -1, -2
VERBS = {
    BULK: "sends a bulk copy to",
    BULK_ATOMIC: "sends a bulk reduction to",
    READ: "reads",
    WRITE: "writes",
    ATOMIC: "atomically updates",
    BLOCK_ATOMIC: "atomically, for its block only, updates",
}

# Loads and stores that others may meet.
STRONG = {"volatile", "relaxed", "acquire", "release", "mmio"}

CUDA_C = (".cu", ".cuh", ".h", ".hpp")  # how files of CUDA C++ end
BARRIERS = {  # of a warp and of a block, by language
    "c": ("__syncwarp()", "__syncthreads()"),
    "cute": ("cute.arch.sync_warp()", "cute.arch.sync_threads()"),
    "numba": ("cuda.syncwarp()", "cuda.syncthreads()"),
}


@dataclass(frozen=True)
class Touch:
    """One side of a race: a thread's access at a source line, of kind READ, WRITE and so on.

    `linear_thread` counts within the block, `linear_block` within the grid; `value` is what was read or
    written, empty where it is not known. `verb` says what it does where VERBS would not do.
    """

    location: Location | None
    block: Index
    thread: Index
    linear_thread: int
    kind: int
    value: str = ""
    verb: str = ""
    linear_block: int = 0

    @property
    def line(self) -> int:
        return self.location.line if self.location else 0


@dataclass(frozen=True)
class Race:
    """Two touches of one word that nothing orders; `first` stands first on the way through the program.

    `space` is shared or global. `element` is the index in the array, flat where its shape is not known;
    `label` is the learner's name of the array, empty where it is not known. `place` says where a barrier of
    all threads would order the two: ``after`` the first or ``before`` the second line, empty if neither or
    not known. `repeated` says of two accesses on one line that they belong to different rounds of a loop,
    `signalled` of a kernel that its threads use atomics or volatile accesses, too, `in_parts` that only some
    threads wait at some barriers, `by_mbarriers` that it has mbarriers, and `copied` that
    the first touch is a copy by ``cp.async``, which the second reads. The elements are words of an array of
    structs if it `has_fields`. The kernel was written `in_cute`, CuTe DSL, or in another language.
    """

    kernel: str
    space: str
    first: Touch
    second: Touch
    element: tuple[int, ...]
    size: int
    label: str = ""
    place: str = ""
    repeated: bool = False
    signalled: bool = False
    in_parts: bool = False
    by_mbarriers: bool = False
    copied: bool = False
    has_fields: bool = False
    in_cute: bool = False

    @property
    def block(self) -> Index:
        """The block of the second touch."""
        return self.second.block

    @property
    def within_a_block(self) -> bool:
        return self.first.block == self.second.block

    @property
    def within_a_warp(self) -> bool:
        """Whether both threads belong to one warp, so that ``syncwarp`` is enough."""
        return self.within_a_block and self.first.linear_thread // 32 == self.second.linear_thread // 32

    @property
    def sighting(self) -> str:
        """The two accesses with their lines and threads, and no cure."""
        array = f" `{self.label}`" if self.label else ""
        place = ", ".join(map(str, self.element))
        word = f"{self.label}[{place}]" if self.label else f"element {place}"
        if self.has_fields:
            start = self.element[0] * self.size
            word = f"bytes {start} to {start + self.size - 1} of {self.label}"
        touches = sorted((self.first, self.second), key=lambda t: t.line)
        width = max(len(source_text(t.location)) for t in touches)
        rows = [
            f"    {t.line:4} │ {source_text(t.location):<{width}}   "
            f"thread {t.linear_thread} of block {_short(t.block)} {t.verb or VERBS[t.kind]} {word}"
            + (f" = {t.value}" if t.value else "")
            for t in touches
        ]
        lead = f"Race in kernel {self.kernel}, {self.space} array{array}"
        return "\n".join([lead, *rows])

    def __str__(self) -> str:
        return "\n".join([self.sighting, *self._explained()])

    def _explained(self) -> tuple[str, str]:
        earlier, later = self.first.line, self.second.line
        c = self.first.location is not None and self.first.location.file.endswith(CUDA_C)
        if min(self.first.kind, self.second.kind) < READ:
            return (
                "Nothing tells the second thread that the copy is there: barriers do not wait for it.",
                "Usual cure: let every thread that touches what the copy brings wait for the mbarrier that "
                "counts its bytes, or meet at a barrier with one that has.",
            )
        if not self.within_a_block and self.space == "shared":
            return (
                "The cluster does not meet in between.",
                "Usual cure: cluster.sync() (barrier.cluster) between the two, in all threads of all blocks.",
            )
        if not self.within_a_block:
            usual = (
                "Usual cure: let each block write its own elements, use an atomic, or make it two kernels."
            )
            if self.signalled and {self.first.kind, self.second.kind} == {READ, WRITE}:
                fence = "__threadfence()" if c else "cuda.threadfence()"
                usual += f" If a flag, a counter or a lock tells whose turn it is: {fence} before "
                usual += "it is raised or opened, and after it is seen or taken."
            return "Nothing orders two blocks of one launch.", usual
        names = BARRIERS["cute" if self.in_cute else "c" if c else "numba"]
        cure = names[0 if self.within_a_warp else 1]
        members = "warp" if self.within_a_warp else "block"
        if self.copied:
            wait = "__pipeline_wait_prior or cp.async.wait_group" if c else "cp.async.wait_group"
            return (
                f"No barrier between line {earlier} and line {later}. A thread waits only for the "
                "copies that it sent itself.",
                f"Usual cure: every thread waits for its own copies ({wait}), then comes {cure}, and then "
                f"line {later}.",
            )
        at = f"line {earlier if self.place == 'after' else later}"
        usual = f"Usual cure: {cure} {self.place} {at}."
        if self.within_a_warp:
            usual = f"{usual[:-1]}; {names[1]} if other warps share the array, too."
        if earlier == later:
            lead = f"Nothing orders the two accesses of line {earlier}."
            if not self.repeated and READ in (self.first.kind, self.second.kind):
                apart = "write into another array, or have all read before anyone writes; "
                return lead, f"Usual cure: {apart}or an atomic, if threads add to one element."
            if not self.repeated:
                if self.first.kind == self.second.kind == WRITE:
                    lead = "Several threads store different values there at once, "
                    lead += "and CUDA leaves open which one stays."
                return lead, "Usual cure: let one thread write the element, or use an atomic."
            again = f"Usual cure: {cure} at the end of each pass through the loop, outside any branch; "
            if READ not in (self.first.kind, self.second.kind):
                again = f"Usual cure: let one thread write the element; {again.removeprefix('Usual cure: ')}"
            return lead, again + "or an atomic, if threads add to one element."
        if not self.place and self.by_mbarriers and not self.within_a_warp:
            usual = (
                "Usual cure: the thread that comes first arrives at an mbarrier after its access, and the "
                "other one waits for that phase before its own. If one lane arrives for its warp, "
                f"{names[0]} comes before the arrival."
            )
        elif not self.place:
            usual = (
                f"Usual cure: {cure} between the two, outside any branch, where all threads of the {members} "
            )
            usual += "come by."
        barrier = "No barrier at which both threads wait" if self.in_parts else "No barrier"
        again = "" if earlier < later else " of the next pass through the loop"
        return f"{barrier} between line {earlier} and line {later}{again}.", usual


def _short(block: Index) -> str:
    return str(block[0]) if block[1:] == (0, 0) else str(block)
