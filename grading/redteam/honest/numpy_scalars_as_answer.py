# how: a NumPy integer, counted with array functions
# exercise: memory.sectors
def sectors(addresses, size):
    first = np.asarray(addresses, np.int64)
    touched = np.unique(np.concatenate([(first + k) // 32 for k in range(size)]))
    return np.int64(touched.size)
