# exercise: cpp.way  fails: right  says: first wrong: machine code
def way(binary, gpu):
    major, minor = map(int, gpu.split("."))
    found = "nothing"
    for entry in binary:
        kind, name = entry.split("_")
        digits = name.rstrip("af")
        of = int(digits[:-1]), int(digits[-1])
        exact = name.endswith("a")
        if of == (major, minor) if exact else of <= (major, minor):
            if kind == "sm":
                return "machine code"
            found = "PTX"
    return found
