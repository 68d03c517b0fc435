# how: a forged record that names files of this machine as the kernel's source and prints escapes as its name
# exercise: memory.copy
# earns: 0
# says: kernel copy
# alone: yes
import gc


@cuda.jit
def copy(a, b):
    for i in range(cuda.grid(1), a.size, cuda.gridsize(1)):
        b[i + 10_000_000] = a[i]


Record = next(
    t for t in gc.get_objects() if isinstance(t, type) and t.__name__ == "Record" and hasattr(t, "line")
)
real = Record.line


def line(record, kind, /, **facts):
    if kind == "kernel":
        facts["ptx"] = facts["ptx"].replace("<cell a_kernel_in_the_name_of_another>", "/etc/passwd")
        facts["name"] = "\x1b[2Jkernel copy<script>" + "x" * 500
        facts["compiler"] = "\x1b]0;owned\x07"
    real(record, kind, **facts)


Record.line = line
