"""Lab 26: attention of today: units that share a softmax (part A), work that is left out (part B)."""
