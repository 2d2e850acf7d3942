"""What several benchmarks measure: functions, and models that were exported."""
