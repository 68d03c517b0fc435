# exercise: mixed.dtypes  fails: right  says: should be
def dtypes(program):
    found = []
    for operation, inputs in program:
        given = [found[i] if isinstance(i, int) else i for i in inputs]
        if operation in {"linear", "matmul", "bmm", "conv2d", "addmm"}:
            found.append("float16")
        elif operation in {"relu", "gelu", "dropout", "reshape", "max", "tanh"}:
            found.append(given[0])
        elif operation in {"add", "mul", "cat", "add_", "mul_"}:
            found.append("float32" if "float32" in given else "float16")
        else:
            found.append("float32")
    return found
