"""Kernels and models on the GPU that is there, beside PyTorch; `python -m benchmarks.gpu`."""
