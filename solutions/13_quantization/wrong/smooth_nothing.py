# exercise: quant.smooth  fails: error  says: naive
def smooth(activations, weights):
    return [1.0] * len(activations[0])
