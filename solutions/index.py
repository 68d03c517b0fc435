# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown]
# # gpulab
#
# A course on GPU acceleration for deep learning and language models, in labs that you do.

# %% jupyter={"source_hidden": true} tags=["committed"]
from gpulab import course

course.home()

# %% [markdown]
# ## The map
#
# Labs from top to bottom; each says what to do before it. The ring fills as you pass its exercises.

# %% jupyter={"source_hidden": true} tags=["committed"]
course.lab_map()

# %% [markdown]
# ## Four paths
#
# Nobody has to do all of it. The labs of a path need only one another, or tell you what to look up.

# %% jupyter={"source_hidden": true} tags=["committed"]
course.lab_map("The short one")

# %% jupyter={"source_hidden": true} tags=["committed"]
course.lab_map("Kernel engineer")

# %% jupyter={"source_hidden": true} tags=["committed"]
course.lab_map("LLM systems")

# %% jupyter={"source_hidden": true} tags=["committed"]
course.lab_map("Frontier")

# %% [markdown]
# ## Where do you begin?
#
# Ten questions, each about something that one of the labs teaches. Click an answer. If you do not know it, do that lab.

# %% jupyter={"source_hidden": true} tags=["committed"]
course.quiz()

# %% [markdown]
# ## What runs here
#
# Run the next cell (`Shift` + `Enter`). It names the device and the compiler. If it fails, type `gpulab doctor` in a terminal.

# %%
import gpulab

gpulab.start()

# %% [markdown]
# ## How a lab works
#
# - **Predict** a number before you run a cell: `gpulab.predict`. It is not graded, and it is what makes the number stay.
# - **Do** the puzzle cells. `gpulab.check("memory.transpose", transpose)` says what is wrong, where and why. Check as
#   often as you like.
# - **Look**: `gpulab.profile(kernel[grid, block], …)` counts, `gpulab.show` draws, `gpulab.trace` steps through,
#   `gpulab.sanitize` finds races.
# - **Stuck?** `gpulab.hint("memory.transpose")` leads on in three steps. Then read the section again that it names.
# - Numbers are **counted** (exact), **modelled** (worked out from a data sheet) or **measured** (by a clock). Each says
#   which it is.

# %% [markdown]
# ## What you have done
#
# Your progress is in one file, `progress.json`, beside this notebook. Copy it to take it to another machine. The rings on
# the map show it as soon as you open this page, and so does the next cell.

# %%
course.progress()

# %% [markdown]
# Exercise by exercise:

# %%
course.progress("00")

# %% [markdown]
# ## Help
#
# - A cell fails with a message from `gpulab`: it says what to do. If it does not, that is a fault of ours: report it.
# - A cell fails with an error from elsewhere: *Kernel → Restart Kernel and Run up to Selected Cell…* first.
# - Something is missing on this machine: `gpulab doctor` in a terminal.
# - You want an AI assistant to help: `AGENTS.md` in this folder asks it to tutor and not to solve. It is worth more to you
#   that way.
#
# ## Honest work
#
# Talk about the labs with others, read what you like, use every tool. What you hand in you have written yourself, line by
# line, and can explain. A kernel from a friend or an assistant teaches you nothing, and your next lab stands on it.
# Name whoever helped you, and what you took from where, in the notebook. If your course has rules of its own, they hold.
#
# The checks here are yours alone. A graded course judges your submission on other contents and sizes: code that fits the
# visible cases only fails there.

# %% [markdown]
# ## Glossary

# %% jupyter={"source_hidden": true} tags=["committed"]
course.glossary()
