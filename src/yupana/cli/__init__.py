"""The command line: parse, call, print. Exit status 0 on success, 2 on a bad request or input, 1 on a fault of ours."""
