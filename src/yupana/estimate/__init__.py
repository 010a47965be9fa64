"""What is made of releases afterwards, without the records: estimates, intervals, areas combined, suppression."""
