# exercise: triton.fuse  fails: right  says: in one kernel with its input
def fuse(operations, outputs):
    return [[name for name, what, _, _ in operations if what != "input"]]
