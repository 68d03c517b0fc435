# exercise: formats.adopt  fails: right  says: should be [128, 2]
def adopt(code):
    return [code, 2]
