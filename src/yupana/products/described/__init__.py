"""Tables as data: any office's records, areas and tables, from a description instead of code."""
