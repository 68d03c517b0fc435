"""What was made with numba.cuda on a machine with a GPU can be counted on the simulator."""

from __future__ import annotations

import numba
import numba.cuda
import numpy as np

from gpulab import cuda
from gpulab.frontends.cuda.bridge import simulated
from gpulab.frontends.cuda.kernels import Kernel, LaunchConfiguration
from gpulab.simulator import device


@numba.cuda.jit(device=True)
def twice(x):
    return 2 * x


@numba.cuda.jit(fastmath=True)
def double(a):
    i = numba.cuda.grid(1)
    if i < a.size:
        a[i] = twice(a[i])


def quadruple(a):
    """Host code as it is on a machine with a GPU."""
    threads = 32
    for _ in range(2):
        double[(a.size + threads - 1) // threads, threads](a)
    numba.cuda.synchronize()
    return helper(a)


def helper(a):
    return numba.cuda.device_array_like(a), a


def test_a_numba_kernel_becomes_a_simulated_one() -> None:
    kernel = simulated(double)
    assert isinstance(kernel, Kernel) and kernel.targetoptions["fastmath"] is True
    a = np.ones(40)
    kernel[2, 32](a)
    assert (a == 2).all()
    assert simulated(double) is kernel


def test_a_launch_shape_of_numbas_becomes_one_of_ours() -> None:
    class Configured:
        """numba's own asks the driver for a stream when it is made."""

        def __init__(self):
            self.dispatcher, self.sharedmem = double, 64
            self.griddim, self.blockdim = (2, 1, 1), (32, 1, 1)

    Configured.__name__ = "_LaunchConfiguration"
    configuration = simulated(Configured())
    assert isinstance(configuration, LaunchConfiguration)
    assert (configuration.grid, configuration.block, configuration.shared) == ((2, 1, 1), (32, 1, 1), 64)
    a = np.ones(40)
    configuration(a)
    assert (a == 2).all()


def test_host_code_that_launches_numba_kernels_goes_through_our_door() -> None:
    launches: list[device.Launch] = []
    a = cuda.to_device(np.ones(40))
    with device.current().observed(launches.append):
        like, same = simulated(quadruple)(a)
    assert same is a and type(like) is type(a)
    assert (a.copy_to_host() == 4).all()
    assert [launch.kernel.name for launch in launches] == ["double", "double"]
    assert launches[0].kernel is launches[1].kernel


def test_what_is_simulated_already_stays_as_it_is() -> None:
    kernel = cuda.jit(lambda a: None)
    assert simulated(kernel) is kernel
    assert simulated(np.sum) is np.sum and simulated(3) == 3
