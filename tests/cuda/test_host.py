"""The host's side of numba.cuda on the simulated device: streams, events, contexts, devices."""

from __future__ import annotations

import asyncio

import numpy as np
import pytest

from gpulab import cuda
from gpulab.frontends.cuda.streams import NoClock
from gpulab.simulator import device, hardware


@cuda.jit
def fill(a):
    i = cuda.grid(1)
    if i < a.size:
        a[i] = i


def test_streams_only_keep_order() -> None:
    stream = cuda.stream()
    array = cuda.device_array(64, stream=stream)
    fill[2, 32, stream](array)
    called = []
    stream.add_callback(lambda *args: called.append(args), "mine")
    with stream.auto_synchronize() as same:
        assert same is stream
    stream.synchronize()
    assert called == [(stream, 0, "mine")]
    assert list(array.copy_to_host(stream=stream)) == list(range(64))
    assert asyncio.run(stream.async_done()) is stream
    assert int(cuda.default_stream()) == 0 and int(stream) > 2 and int(cuda.external_stream(77)) == 77
    assert cuda.stream().handle != stream.handle
    assert array.bind(stream).stream is stream


def test_events_order_but_do_not_measure() -> None:
    start, end = cuda.event(), cuda.event(timing=False)
    start.record()
    end.record(cuda.stream())
    end.synchronize()
    end.wait()
    assert start.query() and end.recorded
    for measure in (lambda: start.elapsed_time(end), lambda: cuda.event_elapsed_time(start, end)):
        with pytest.raises(NoClock) as caught:
            measure()
        assert str(caught.value) == (
            "event.elapsed_time(): the simulated device has no clock: the time that the simulator takes says "
            "nothing about a GPU. "
            "gpulab.profile(kernel[grid, block], …) counts what the kernel asks of the GPU."
        )


def test_the_device_is_the_gpu_of_the_data_sheet() -> None:
    gpu, found = hardware.find("A100"), cuda.get_current_device()
    assert found.name == "A100 SXM4 80 GB (simulated)"
    assert found.compute_capability == (8, 0) and found.compute_capability.major == 8
    assert (found.WARP_SIZE, found.MAX_THREADS_PER_BLOCK, found.MULTIPROCESSOR_COUNT) == (32, 1024, 108)
    assert gpu.capability.shared_per_block_optin == found.MAX_SHARED_MEMORY_PER_BLOCK_OPTIN
    assert found.MAX_GRID_DIM_X == 2**31 - 1 and found.MAX_BLOCK_DIM_Z == 64
    assert found.CLOCK_RATE == 1_410_000
    assert "WARP_SIZE" in dir(found)
    assert (found.supports_float16, found.supports_bfloat16, found.supports_fp8) == (True, True, False)
    assert (cuda.is_float16_supported(), cuda.is_bfloat16_supported(), cuda.is_fp8_supported()) == (
        True,
        True,
        False,
    )
    with pytest.raises(AttributeError, match="the simulated device has no attribute 'TEXTURE_PITCH'"):
        found.TEXTURE_PITCH  # noqa: B018


def test_every_attribute_of_the_device_is_a_whole_number() -> None:
    from gpulab.frontends.cuda.host import ATTRIBUTES

    for name in hardware.names():
        assert all(isinstance(read(hardware.find(name)), int) for read in ATTRIBUTES.values())


def test_there_is_one_device() -> None:
    assert len(cuda.gpus) == 1 and cuda.list_devices() is cuda.gpus
    assert cuda.gpus[0].device.name == cuda.gpus.current.device.name == next(iter(cuda.gpus)).device.name
    assert cuda.select_device(0).id == 0
    with cuda.gpus[0] as context:
        assert context is cuda.current_context()
    with pytest.raises(IndexError, match="there is one simulated device, number 0; 1 does not exist"):
        cuda.select_device(1)
    with pytest.raises(IndexError):
        cuda.gpus[1]


def test_the_context_knows_how_much_memory_is_free() -> None:
    context = cuda.current_context()
    before, total = context.get_memory_info()
    array = cuda.device_array(1000, np.float64)
    assert context.get_memory_info() == (before - array.nbytes, total)
    assert context.get_memory_info().total == int(hardware.find("A100").dram_bytes)
    assert int(context.get_default_stream()) == 0 and context.create_event().query()
    context.synchronize()
    context.reset()
    cuda.get_current_device().reset()
    assert context.device.get_primary_context() is context
    with context.defer_cleanup():
        assert int(context.create_stream()) > 0


def test_calls_without_effect_are_accepted() -> None:
    cuda.synchronize()
    cuda.profile_start()
    cuda.profile_stop()
    with cuda.defer_cleanup(), cuda.profiling():
        pass
    cuda.close()
    assert cuda.is_available() and cuda.is_supported_version() and cuda.cuda_error() is None


def test_detect_says_that_the_device_is_simulated(capsys) -> None:
    assert cuda.detect()
    said = capsys.readouterr().out
    assert "simulated" in said and "A100" in said and "8.0" in said


def test_another_gpu_can_be_simulated_and_arrays_stay() -> None:
    array = cuda.to_device(np.arange(4.0))
    try:
        device.simulate("H100")
        assert cuda.get_current_device().compute_capability == (9, 0)
        fill[1, 32](array)
        assert {kernel.cc for kernel in fill.overloads.values()} == {(9, 0)} | (
            {(8, 0)} if len(fill.overloads) > 1 else set()
        )
    finally:
        device.simulate("A100")
    assert list(array.copy_to_host()) == [0, 1, 2, 3]


def test_a_gpu_that_does_not_exist_is_one_line_with_the_names() -> None:
    with pytest.raises(hardware.UnknownGPU) as caught:
        device.simulate("A1000000")
    assert "\n" not in str(caught.value) and "H100" in str(caught.value)


def test_the_face_compiles_to_ptx_without_launching() -> None:
    def twice(x):
        return cuda.selp(x > 0, x, -x)

    code, result = cuda.compile(twice, "float64(float64)")
    assert ".visible .func" in code and str(result) == "float64"
    code, result = cuda.compile_ptx(fill, "void(float32[:])", cc=(9, 0))
    assert ".target sm_90" in code and str(result) == "none"
    assert cuda.compile_ptx_for_current_device(fill, "void(float32[:])")[0].count(".entry") == 1
    assert cuda.compile_for_current_device(twice, "float32(float32)")[0]
    assert len(cuda.compile_all(twice, "float32(float32)", output="ptx")[0]) == 1
