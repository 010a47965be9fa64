"""What is done to noisy tables after they exist: coterminous areas and suppression. Public: reads releases only."""
