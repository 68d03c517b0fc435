# exercise: formats.adopt  fails: right  says: should be [128, 2]
def adopt(code):
    return [0 if code == 0x80 else code, 2]
