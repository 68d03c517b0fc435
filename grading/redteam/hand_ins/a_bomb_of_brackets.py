# how: JSON that is nested a million levels deep
# says: nested too deep
def hand_in(path, notebook, course):
    path.write_bytes(b'{"cells": ' + b"[" * 1_000_000)
