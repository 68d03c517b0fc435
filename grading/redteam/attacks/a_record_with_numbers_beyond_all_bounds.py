# how: a forged record whose sizes, offsets and grids overflow whoever multiplies them
# exercise: memory.copy
# earns: 0
# slow: yes
# says: cannot be replayed
# alone: yes
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
        for event in facts["events"]:
            event["grid"] = [2**62, -1, 10**30]
            event["pointers"] = [[-8, 10**20, -1]]
    real(record, kind, **facts)


Record.line = line
