# how: draws a figure, shows a table and a widget's text in the cell of the solution
# exercise: memory.copy
import matplotlib.pyplot as plt


@cuda.jit
def copy(a, b):
    for i in range(cuda.grid(1), a.size, cuda.gridsize(1)):
        b[i] = a[i]


figure, axes = plt.subplots()
axes.plot([1, 2, 4], [1, 2, 4])
plt.show()
display({"text/html": "<b>done</b>"}, raw=True)
figure
