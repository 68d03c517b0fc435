# how: a dataclass with properties does the arithmetic
# exercise: arch.bound
from dataclasses import dataclass


@dataclass
class Product:
    m: int
    n: int
    k: int
    bytes: int
    dtype: str

    @property
    def flops(self) -> float:
        return 2.0 * self.m * self.n * self.k

    @property
    def moved(self) -> float:
        return float(self.bytes * (self.m * self.k + self.k * self.n + self.m * self.n))


def bound(product, gpu):
    p = Product(**{name: product[name] for name in ("m", "n", "k", "bytes", "dtype")})
    intensity = p.flops / p.moved
    ridge = gpu["peak"][p.dtype] / gpu["dram_bandwidth"]
    if intensity < ridge:
        return [intensity, "memory", p.moved / gpu["dram_bandwidth"]]
    return [intensity, "compute", p.flops / gpu["peak"][p.dtype]]
