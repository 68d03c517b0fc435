"""The judge's own cases, a module for each module of exercises."""
