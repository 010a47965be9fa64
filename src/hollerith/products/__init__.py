"""Data products: a folder each, with a public half (specification, plan, tables) and a confidential half (run)."""
