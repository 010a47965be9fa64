"""The redistricting data of P.L. 94-171: tables P1 to P5 and H1, and the Bureau's record layout. Public."""
