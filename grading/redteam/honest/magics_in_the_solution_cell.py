# how: line magics, a shell command and help in the cell of the solution
# exercise: memory.copy
get_ipython().run_line_magic("matplotlib", "inline")
get_ipython().run_line_magic("timeit", "-n 1 -r 1 sum(range(10))")
listed = get_ipython().getoutput("echo hello")


@cuda.jit
def copy(a, b):
    for i in range(cuda.grid(1), a.size, cuda.gridsize(1)):
        b[i] = a[i]
