# exercise: triton.fuse  fails: bytes  says: naive
def fuse(operations, outputs):
    return [[name] for name, what, _, _ in operations if what != "input"]
