# exercise: cupy.pipeline  fails: right  says: the kernel of chunk 0 may start before its copy in has ended
def pipeline(chunks, buffers):
    return [{"stream": do, "do": do, "chunk": k} for k in range(chunks) for do in ("in", "kernel", "out")]
