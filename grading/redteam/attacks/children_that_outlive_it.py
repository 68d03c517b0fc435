# how: children that ignore every signal, leave the session and go on
# exercise: memory.sectors
# earns: 0
# slow: yes
# says: should be
# also: memory.copy 4
import os
import signal
import time

for _ in range(20):
    if os.fork() == 0:
        os.setsid()
        for number in range(1, 65):
            try:
                signal.signal(number, signal.SIG_IGN)
            except (OSError, ValueError):
                pass
        time.sleep(1000)
        os._exit(0)


def sectors(addresses, size):
    return 4
