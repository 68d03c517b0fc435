"""Lab 23: asynchronous pipelines, on the A100 (part A) and on the H100 (part B)."""
