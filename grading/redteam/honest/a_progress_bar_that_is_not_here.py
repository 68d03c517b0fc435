# how: imports a progress bar that is not installed here, asks for figures in a widget, and uses neither
# exercise: memory.copy
%matplotlib widget
from tqdm_that_is_not_here import tqdm
import pandas_that_is_not_here as pd


@cuda.jit
def copy(a, b):
    for i in range(cuda.grid(1), a.size, cuda.gridsize(1)):
        b[i] = a[i]


def measured(table: pd.DataFrame) -> None:
    for row in tqdm(table):
        print(row)
