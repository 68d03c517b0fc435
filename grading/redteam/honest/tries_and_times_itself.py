# how: try/except/finally, assertions, timing, a context manager and a table of times beside it
# exercise: memory.sectors
import time
from contextlib import contextmanager

times = {}


@contextmanager
def timed(name):
    began = time.perf_counter()
    try:
        yield
    finally:
        times[name] = time.perf_counter() - began


def sectors(addresses, size):
    assert size > 0, size
    with timed(size):
        try:
            return len({b // 32 for a in addresses for b in range(a, a + size)})
        except TypeError as error:
            raise ValueError("addresses are whole numbers") from error


try:
    sectors(None, 4)
except ValueError:
    pass
