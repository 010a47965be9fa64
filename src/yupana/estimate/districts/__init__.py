"""District plans under noise."""
