# exercise: cupy.pipeline  fails: makespan  says: 3 stages
def pipeline(chunks, buffers):
    return [{"stream": 0, "do": do, "chunk": k} for k in range(chunks) for do in ("in", "kernel", "out")]
