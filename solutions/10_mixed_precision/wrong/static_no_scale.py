# exercise: mixed.static  fails: right  says: becomes infinite
def static(gradients):
    return 1.0
