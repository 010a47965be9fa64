"""The explorer: a page in the browser where budgets are chosen by looking. Public: it reads plans, never records."""
