"""One parent and its children: the estimate, solved to a certificate."""
