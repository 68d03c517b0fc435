"""Lab 28: experts, disaggregated serving, and what runs behind training."""
