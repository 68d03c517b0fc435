# how: nested loops and dict() in place of a comprehension
# exercise: cupy.pipeline
def pipeline(chunks, buffers):
    steps = []
    for chunk in range(chunks):
        stream = chunk % buffers
        for action in ["in", "kernel", "out"]:
            steps.append(dict(chunk=chunk, stream=stream, do=action))
    return steps
