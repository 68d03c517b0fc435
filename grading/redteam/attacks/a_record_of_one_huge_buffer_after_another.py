# how: a forged record that wants more memory than the judge has
# exercise: memory.copy
# earns: 0
# slow: yes
# says: ended without a verdict
# also: memory.sectors 3
import gc


@cuda.jit
def copy(a, b):
    for i in range(cuda.grid(1), a.size, cuda.gridsize(1)):
        b[i] = a[i]


Record = next(
    t for t in gc.get_objects() if isinstance(t, type) and t.__name__ == "Record" and hasattr(t, "line")
)
real = Record.line


def line(record, kind, /, **facts):
    if kind == "case":
        facts["buffers"] += [1 << 30] * 200
    real(record, kind, **facts)


Record.line = line
