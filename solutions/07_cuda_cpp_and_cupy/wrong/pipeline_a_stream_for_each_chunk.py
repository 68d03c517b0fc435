# exercise: cupy.pipeline  fails: right  says: may overwrite chunk 0
def pipeline(chunks, buffers):
    return [{"stream": k, "do": do, "chunk": k} for k in range(chunks) for do in ("in", "kernel", "out")]
