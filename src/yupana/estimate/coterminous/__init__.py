"""Tables of areas that cover the same blocks, combined into one."""
