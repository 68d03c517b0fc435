# exercise: decode.speculate  fails: tokens  says: too few tokens


def speculate(draft, target, choose, text, ahead):
    return [choose(target([text[-1]], len(text) - 1)[0])]
