"""Bytes in and out: documents, delimited text, files that are replaced in one step."""
