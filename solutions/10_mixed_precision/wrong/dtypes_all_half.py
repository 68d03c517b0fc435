# exercise: mixed.dtypes  fails: right  says: should be
def dtypes(program):
    return ["float16" for _ in program]
