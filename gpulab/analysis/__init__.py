"""What people ask about a kernel: its counts, its machine code and modelled time, its mistakes, its steps."""
