"""Configurations of TopDown, read from documents and written back."""
