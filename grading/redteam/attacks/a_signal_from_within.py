# how: a crash of native code
# exercise: memory.sectors
# earns: 0
# slow: yes
# says: the process ended (SIGSEGV)
# alone: yes
import ctypes


def sectors(addresses, size):
    ctypes.string_at(0)
