"""All launches and all looks of the host at device memory go through one door, where others can stand."""

from __future__ import annotations

import numpy as np
import pytest

from gpulab import cuda
from gpulab.foundation.errors import Message
from gpulab.simulator import device, simt


@cuda.jit
def scale(a, factor):
    i = cuda.grid(1)
    if i < a.size:
        a[i] *= factor


class Listener(simt.Observer):
    def __init__(self) -> None:
        self.heard: list[str] = []

    def start(self, program, grid, block) -> None:
        self.heard.append("start")

    def end(self) -> None:
        self.heard.append("end")


def test_an_observer_is_made_for_every_launch() -> None:
    seen: list[tuple[device.Launch, Listener]] = []

    def stand(launch):
        seen.append((launch, Listener()))
        return seen[-1][1]

    a = cuda.to_device(np.ones(64, np.float32))
    with device.current().observed(stand):
        scale[2, 32](a, 2.0)
        scale[1, 64, 0, 128](a, 3.0)
    scale[1, 64](a, 4.0)
    assert [listener.heard for _, listener in seen] == [["start", "end"]] * 2
    first, second = (launch for launch, _ in seen)
    assert (first.grid, first.block, first.shared_bytes) == ((2, 1, 1), (32, 1, 1), 0)
    assert (second.block, second.shared_bytes) == ((64, 1, 1), 128)
    assert first.kernel is second.kernel and first.kernel.name == "scale"
    assert (a.copy_to_host() == 24).all()


def test_a_launch_says_where_its_pointers_are_and_what_they_are_called() -> None:
    launches: list[device.Launch] = []
    a = cuda.to_device(np.ones(64, np.float32))
    with device.current().observed(launches.append):
        scale[2, 32](a[8:16], np.float32(2))
    (launch,) = launches
    (offset,) = launch.pointers
    address = int.from_bytes(launch.arguments[offset : offset + 8], "little")
    allocation = device.current().memory.find(address)
    assert address - allocation.address == 32
    (label,) = launch.arrays
    assert (label.name, label.address, label.shape, label.dtype) == ("a", address, (8,), "float32")


def test_one_who_wants_no_observer_is_left_out_and_the_others_hear() -> None:
    a, listener = np.ones(4), Listener()
    with device.current().observed(lambda launch: None), device.current().observed(lambda launch: listener):
        scale[1, 32](a, 2.0)
    assert listener.heard == ["start", "end"] and (a == 2).all()


def test_observers_leave_when_something_goes_wrong() -> None:
    @cuda.jit
    def kernel(a):
        a[0] = a[9]

    current = device.current()
    with pytest.raises(simt.KernelFault), current.observed(lambda launch: None):
        kernel[1, 1](np.ones(4))
    assert current.observer_factories == ()


def test_options_of_the_simulator_are_set_for_a_while() -> None:
    @cuda.jit
    def race(a):
        t = cuda.threadIdx.x
        a[t] = t
        a[t] += a[(t + 32) % 64]

    lockstep, serial = np.zeros(64, np.int32), np.zeros(64, np.int32)
    race[1, 64](lockstep)
    with device.current().using(schedule=simt.warp_serial(0)):
        race[1, 64](serial)
    assert list(lockstep) == [t + (t + 32) % 64 for t in range(64)]
    assert list(serial) != list(lockstep)
    assert device.current().options == {}


def test_what_a_kernel_prints_can_be_caught() -> None:
    @cuda.jit
    def speak(n):
        print("n is", n)

    said: list[str] = []
    with device.current().using(write=said.append):
        speak[1, 1](3)
    assert "".join(said) == "n is 3\n"


class HandsOff(Message):
    """What a recorder says when the host wants to look."""


class Recorder:
    """Stands in place of the simulator: nothing runs, and the host sees nothing."""

    def __init__(self) -> None:
        self.launches: list[device.Launch] = []
        self.writes = 0

    def launch(self, on, launch) -> None:
        self.launches.append(launch)

    def host_access(self, on, allocation, writes) -> None:
        if not writes:
            raise HandsOff("while a launch is recorded, arrays have no contents")
        self.writes += 1


def test_a_recorder_can_stand_in_place_of_the_simulator() -> None:
    a = cuda.to_device(np.ones(64, np.float32))
    recorder = Recorder()
    with device.current().executed_by(recorder):
        scale[2, 32](a, 2.0)
        b = cuda.to_device(np.zeros((2, 2)))
        for look in (a.copy_to_host, lambda: a[0], lambda: np.asarray(a), lambda: list(a), lambda: b.T):
            with pytest.raises(HandsOff, match="arrays have no contents"):
                look()
        with pytest.raises(HandsOff):
            scale[2, 32](np.ones(4), 2.0)  # a NumPy argument would have to come back
        b[0, 0] = 1
    assert [launch.kernel.name for launch in recorder.launches] == ["scale", "scale"]
    assert recorder.writes == 3
    assert (a.copy_to_host() == 1).all()


def test_wrong_launches_are_refused_before_a_recorder_sees_them() -> None:
    recorder = Recorder()
    with device.current().executed_by(recorder), pytest.raises(device.LaunchError):
        scale[1, 4096](cuda.device_array(4), 2.0)
    assert recorder.launches == []


class Impatient:
    """Somebody who stops every kernel."""

    def launch(self, device, launch) -> None:
        raise KeyboardInterrupt

    def host_access(self, device, allocation, writes) -> None:
        pass


def test_a_kernel_that_is_stopped_says_so_in_one_line_and_stays_an_interrupt() -> None:
    with device.current().executed_by(Impatient()), pytest.raises(KeyboardInterrupt) as stopped:
        scale[1, 32](cuda.to_device(np.ones(4)), 2.0)
    said = stopped.value._render_traceback_()  # what a notebook shows
    assert said == ["Kernel scale was stopped before its end: its results are incomplete."]


def test_a_program_is_decoded_once() -> None:
    current = device.current()
    scale[1, 32](np.ones(4, np.float32), np.float32(2))
    (kernel,) = (k for t, k in scale.overloads.items() if str(t[1]) == "float32" and "float32" in str(t[0]))
    assert current.program(kernel) is current.program(kernel)
    assert current.program(kernel).display_name == "scale"
    assert current.resources(kernel).registers > 0


def test_blocks_that_wait_for_each_other_run_if_the_gpu_holds_them() -> None:
    @cuda.jit
    def relay(flags, out):
        block = cuda.blockIdx.x
        if cuda.threadIdx.x == 0:
            while cuda.atomic.add(flags, block, 0) == 0:
                pass
            out[block] = block
            if block > 0:
                cuda.atomic.exch(flags, block - 1, 1)

    blocks = 8
    flags, out = np.zeros(blocks, np.int32), np.zeros(blocks, np.int32)
    flags[-1] = 1
    relay[blocks, 32](flags, out)
    assert list(out) == list(range(blocks))


def test_the_number_of_resident_blocks_follows_the_gpu() -> None:
    launches: list[device.Launch] = []
    with device.current().observed(launches.append):
        scale[2, 1024](np.ones(4), 2.0)
        scale[2, 32, 0, 100_000](np.ones(4), 2.0)
    assert [device.current().resident_blocks(launch) for launch in launches] == [2 * 108, 108]
