"""Analyzers: which questions under sql/ to ask, and how their rows become findings."""
