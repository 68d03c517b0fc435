# exercise: pytorch.benchmark  fails: right  says: first wrong: disturbed
from gpulab.exercises.lab_08_pytorch_performance import ClockedGPU


def benchmark(machine):
    gpu = ClockedGPU(machine)
    gpu.call()
    gpu.flush()
    gpu.synchronize()
    began = gpu.now()
    gpu.call()
    gpu.synchronize()
    return gpu.now() - began
