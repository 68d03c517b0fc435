"""Lab 27: training in eight and four bits, Muon, and scaling laws."""
