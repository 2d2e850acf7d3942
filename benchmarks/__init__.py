"""Benchmarks: run from the clone's root as `python -m benchmarks.NAME`; results are kept in
results/, in a folder for each model of processor.
"""
