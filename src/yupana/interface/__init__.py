"""The public Python interface: what the command line does, as functions and objects. docs/python.md describes it."""
