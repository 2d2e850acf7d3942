"""Other systems, as benchmarks call them."""
