# how: runs its kernel on arrays of its own, compares, profiles and checks it in the solution cell
# exercise: memory.copy
@cuda.jit
def copy(a, b):
    for i in range(cuda.grid(1), a.size, cuda.gridsize(1)):
        b[i] = a[i]


mine = np.arange(1000, dtype=np.float32)
there, back = cuda.to_device(mine), cuda.device_array(1000, np.float32)
copy[4, 128](there, back)
np.testing.assert_array_equal(back.copy_to_host(), mine)
print(gpulab.profile(copy[4, 128], there, back)["global_load_sectors"])
