"""What TopDown publishes: the tables, record layout and public files of P.L. 94-171, and their check."""
