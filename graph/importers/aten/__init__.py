"""Programs of aten operators, PyTorch's own, as Graphs; torch is not imported."""
