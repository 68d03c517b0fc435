# how: imports a progress bar that is not installed here, asks for figures in a widget, and uses neither
# exercise: memory.copy
get_ipython().run_line_magic("matplotlib", "widget")
import pandas_that_is_not_here as pd
from tqdm_that_is_not_here import tqdm


@cuda.jit
def copy(a, b):
    for i in range(cuda.grid(1), a.size, cuda.gridsize(1)):
        b[i] = a[i]


def measured(table: pd.DataFrame) -> None:
    for row in tqdm(table):
        print(row)
