"""How a budget is shared among queries and geolevels so that what is asked for has the least variance. Public."""
