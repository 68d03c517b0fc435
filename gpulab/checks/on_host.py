"""What the host code of an answer may do around its kernels: one set of rules for the check and the judge.

The judge records launches without running them and replays them on other contents. So host code may not look
at device memory, and what it writes there is small and comes before the kernels that use it.
"""

from __future__ import annotations

from collections.abc import Iterator

from gpulab.simulator import device as devices
from gpulab.simulator import simt

from . import messages
from .refusals import Refused

MOST_UPLOADED = 4096  # bytes that host code may bring along, in all: tables of weights, not of answers
MOST_CONSTANT = 4096  # … and the constants of one kernel
MOST_LAUNCHES = 2_000  # of one case


class Rules:
    """Follows one run of an answer: which buffers there are, which the host wrote, which kernels have used.

    `buffers` and `names` are the exercise's arrays, in order; those of `inputs`, by number, stay as they are.
    """

    def __init__(self, buffers: list[simt.Allocation], names: list[str], inputs: set[int]) -> None:
        self.buffers = buffers  # kept, so that no address is used twice
        self.names = names
        self.inputs = inputs
        self._written: dict[int, simt.Allocation] = {}  # by the host, since the last launch
        self._used: set[int] = set()
        self._uploaded = 0
        self._launches = 0

    def number(self, allocation: simt.Allocation) -> int:
        """The number of a buffer; a new one gets the next."""
        for index, known in enumerate(self.buffers):
            if known is allocation:
                return index
        self.buffers.append(allocation)
        return len(self.buffers) - 1

    def host_access(self, allocation: simt.Allocation, writes: bool) -> None:
        """The host wants to see or change device memory. Raises Refused."""
        index = self.number(allocation)
        name = self.names[index] if index < len(self.names) else messages.array_of_yours()
        if not writes:
            raise Refused(messages.read_on_host(name))
        if index in self.inputs:
            raise Refused(messages.input_written_on_host(name))
        if index in self._used:
            raise Refused(messages.written_between_launches(name))
        self._written[index] = allocation

    def uploads(self) -> Iterator[tuple[int, bytes]]:
        """What the host has written since the last launch, by buffer; one byte where all are the same.

        Raises Refused where it is too much in all.
        """
        for index, allocation in self._written.items():
            data = allocation.data.tobytes()
            if data and data == data[:1] * len(data):
                yield index, data[:1]
                continue
            self._uploaded += len(data)
            if self._uploaded > MOST_UPLOADED:
                raise Refused(messages.too_many_uploads(self._uploaded, MOST_UPLOADED))
            yield index, data
        self._written.clear()

    def launch(self, device: devices.SimulatedDevice, launch: devices.Launch) -> list[tuple[int, int, int]]:
        """The buffers that a launch is given: (offset in the arguments, buffer, offset in the buffer).

        Raises Refused where there were too many launches, or the kernel brings along too much.
        """
        self._launches += 1
        if self._launches > MOST_LAUNCHES:
            raise Refused(messages.too_many_launches(MOST_LAUNCHES))
        size = constant_bytes(device.program(launch.kernel))
        if size > MOST_CONSTANT:
            raise Refused(messages.too_many_constants(launch.kernel.name, size, MOST_CONSTANT))
        found = []
        for at in launch.pointers:
            address = int.from_bytes(launch.arguments[at : at + 8], "little")
            if (allocation := device.memory.find(address)) is not None:
                found.append((at, self.number(allocation), address - allocation.address))
        self._used.update(buffer for _, buffer, _ in found)
        return found


def constant_bytes(program: simt.Program) -> int:
    """Bytes of data that a kernel's PTX brings along."""
    return sum(len(v.initial.rstrip(b"\0")) for v in program.module.variables.values() if v.initial)
