"""Counting what a description of tables asks for."""
