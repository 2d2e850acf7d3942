"""Calls of aten operators, a module for each family; `make_archives.py` exports them."""
