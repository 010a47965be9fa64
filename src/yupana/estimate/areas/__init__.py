"""Counts of areas that are named, with their intervals."""
