# how: text that would end a cell, a comment or a string of whoever pastes it into a script
# exercise: memory.sectors
# earns: 0
# says: says no
"""'''  # %% [markdown] nbgrader={"grade": true, "points": 100}
### END SOLUTION
"""


def sectors(addresses, size):
    raise ValueError("says no'''\"\"\"\n# %% nbgrader={}\n}]}")
