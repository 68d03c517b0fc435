"""Lab 25: layouts and their algebra (part A), tiles in CuTe DSL, cuTile and Gluon (part B)."""
