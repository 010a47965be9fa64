"""Least squares on the whole tree of geounits."""
