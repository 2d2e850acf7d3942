"""Searches over recorded spaces, whose every point was timed; `python -m benchmarks.search`."""
