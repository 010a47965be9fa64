"""Public descriptions of what is published: plans, budgets, tables."""
