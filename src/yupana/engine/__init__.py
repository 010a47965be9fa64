"""Where work is done: in this process, in processes of this machine, or on a cluster. It knows nothing of records."""
