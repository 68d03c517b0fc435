# exercise: pytorch.benchmark  fails: right  says: asynchronous
import statistics

from gpulab.exercises.lab_08_pytorch_performance import ClockedGPU


def benchmark(machine):
    gpu = ClockedGPU(machine)
    gpu.call()
    times = []
    for _ in range(21):
        began = gpu.now()
        gpu.call()
        times.append(gpu.now() - began)
    return statistics.median(times)
