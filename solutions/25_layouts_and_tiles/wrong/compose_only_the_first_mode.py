# exercise: layout.compose  fails: right  says: should be
def compose(a, size, stride):
    return [(size, a[0][1] * stride)]
