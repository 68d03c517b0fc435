"""Lab 26: what attention of today adds to FlashAttention: units that share a softmax (A), work left out (B)."""
