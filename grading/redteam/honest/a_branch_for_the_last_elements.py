# how: a while loop with the last step taken out of it, and a helper on the device
# exercise: basics.saxpy
@cuda.jit(device=True, inline=True)
def multiply_add(a, x, y):
    return a * x + y


@cuda.jit
def saxpy(a, x, y):
    i, step = cuda.grid(1), cuda.gridsize(1)
    while i + step < x.size:
        y[i] = multiply_add(a, x[i], y[i])
        i += step
    if i < x.size:
        y[i] = multiply_add(a, x[i], y[i])
