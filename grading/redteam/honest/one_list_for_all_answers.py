# how: clears and fills one list again and again, and hands it out every time
# exercise: pytorch.idle
answer = []


def idle(*question):
    answer[:] = the_labs_own(*question)
    return answer
