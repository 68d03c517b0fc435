# exercise: cpp.way  fails: right  says: first wrong: whole programs
def way(binary, gpu):
    major, minor = map(int, gpu.split("."))
    for entry in binary:
        kind, name = entry.split("_")
        digits = name.rstrip("af")
        of = int(digits[:-1]), int(digits[-1])
        if name.endswith("a"):
            fits = of == (major, minor)
        elif kind == "sm" or name.endswith("f"):
            fits = of[0] == major and of[1] <= minor
        else:
            fits = of <= (major, minor)
        if fits:
            return "machine code" if kind == "sm" else "PTX"
    return "nothing"
