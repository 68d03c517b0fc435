# how: catches the end of its time and goes on where it was
# exercise: memory.sectors
# earns: 0
# slow: yes
# says: stopped after
# limits: 10 2
def sectors(addresses, size):
    while True:
        try:
            while True:
                pass
        except BaseException:
            pass
