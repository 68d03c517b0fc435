"""`cupy.cuda.Device` and the attributes of the simulated GPU under CUDA's names."""

from __future__ import annotations

from gpulab.frontends.cuda.host import ATTRIBUTES
from gpulab.simulator import device as devices

# Where CuPy's name is not that of the driver in capital letters.
SPELLED = {
    "MULTIPROCESSOR_COUNT": "MultiProcessorCount",
    "MAX_THREADS_PER_MULTIPROCESSOR": "MaxThreadsPerMultiProcessor",
    "SINGLE_TO_DOUBLE_PRECISION_PERF_RATIO": "SingleToDoublePrecisionPerfRatio",
}


def attribute_name(name: str) -> str:
    """``MAX_GRID_DIM_X`` → ``MaxGridDimX``."""
    return SPELLED.get(name) or "".join(word.capitalize() for word in name.split("_"))


class CUDARuntimeError(RuntimeError):
    """A call of the runtime failed."""


class Device:
    """The simulated GPU, number 0. Enter it or not: there is no other."""

    def __init__(self, device: int | Device | None = None):
        number = getattr(device, "id", device) or 0
        if number != 0:
            raise CUDARuntimeError(
                "cudaErrorInvalidDevice: invalid device ordinal: "
                f"there is one simulated device, number 0; {number} does not exist."
            )
        self.id = 0

    def __int__(self) -> int:
        return self.id

    def __index__(self) -> int:
        return self.id

    def __enter__(self) -> Device:
        return self

    def __exit__(self, *error: object) -> None:
        pass

    def use(self) -> None:
        """Make it the current device, which it is."""

    def synchronize(self) -> None:
        """Wait for all work on the device, which is done already."""

    @property
    def compute_capability(self) -> str:
        """``'80'`` for 8.0."""
        major, minor = devices.current().cc
        return f"{major}{minor}"

    @property
    def name(self) -> str:
        return f"{devices.current().gpu.product} (simulated)"

    @property
    def attributes(self) -> dict[str, int]:
        """CUDA's attributes by name, from the data sheet."""
        gpu = devices.current().gpu
        return {attribute_name(name): read(gpu) for name, read in ATTRIBUTES.items()}

    @property
    def mem_info(self) -> tuple[int, int]:
        """(free, total) bytes of the GPU's memory."""
        device = devices.current()
        total = int(device.gpu.dram_bytes)
        return max(total - device.memory.used, 0), total

    @property
    def pci_bus_id(self) -> str:
        return "0000:00:00.0"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Device)

    def __hash__(self) -> int:
        return hash((Device, self.id))

    def __repr__(self) -> str:
        return f"<CUDA Device {self.id}>"


def get_device_id() -> int:
    """The number of the current device: 0."""
    return 0


def get_compute_capability() -> str:
    """``'80'`` for 8.0."""
    return Device().compute_capability
