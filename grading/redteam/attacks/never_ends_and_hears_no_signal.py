# how: an endless loop that switches off the alarm and catches whatever is raised
# exercise: memory.sectors
# earns: 0
# slow: yes
# says: stopped after
# limits: 8 2
import signal


def sectors(addresses, size):
    for number in (signal.SIGALRM, signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    signal.setitimer(signal.ITIMER_REAL, 0)
    while True:
        try:
            while True:
                pass
        except BaseException:
            pass
