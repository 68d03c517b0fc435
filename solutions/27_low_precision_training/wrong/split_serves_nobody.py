# exercise: scaling.split  fails: right  says: serving
def split(law, flops, served):
    _, of_size, alpha, of_tokens, beta = law
    ratio = (alpha * of_size / (beta * of_tokens)) ** (1 / (alpha + beta))
    return ratio * (flops / 6) ** (beta / (alpha + beta))
