# exercise: cpp.way  fails: right  says: first wrong: one GPU only
def way(binary, gpu):
    major, minor = map(int, gpu.split("."))
    found = "nothing"
    for entry in binary:
        kind, name = entry.split("_")
        digits = name.rstrip("af")
        of = int(digits[:-1]), int(digits[-1])
        if kind == "sm" and of[0] == major and of[1] <= minor:
            return "machine code"
        if kind == "compute" and of <= (major, minor):
            found = "PTX"
    return found
