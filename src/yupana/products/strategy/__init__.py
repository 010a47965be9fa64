"""Strategies of every product: the budgets that make what is asked for least variable, beside those given. Public."""
