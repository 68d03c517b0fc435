# exercise: formats.adopt  fails: right  says: should be
def adopt(codes):
    return [[0 if code == 0x80 else code for code in codes], 2]
