# exercise: formats.adopt  fails: right  says: should be
def adopt(codes):
    return [list(codes), 2]
