# how: recursion without a limit until the stack of the process ends
# exercise: memory.sectors
# earns: 0
# slow: yes
# says: the process ended (SIGSEGV)
# limits: 30 15
import sys

sys.setrecursionlimit(10**9)


def sectors(addresses, size):
    class Deep:
        def __repr__(self):
            return repr(self)

    return repr(Deep())
