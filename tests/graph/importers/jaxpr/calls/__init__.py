"""Calls of JAX's functions, by families of their rules."""
