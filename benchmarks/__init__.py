"""Benchmarks: run from the clone's root as `python -m benchmarks.NAME`; results are kept in
results/.
"""
