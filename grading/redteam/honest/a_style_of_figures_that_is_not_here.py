# how: sets the style of figures with a module that is not installed, and defines the kernel below
# exercise: basics.add_one
import pandas as pd
import seaborn as sns

sns.set_theme(style="whitegrid")


@cuda.jit
def add_one(a, out):
    i = cuda.grid(1)
    if i < out.size:
        out[i] = a[i] + 1
