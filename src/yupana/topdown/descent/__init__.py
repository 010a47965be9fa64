"""From the root to the blocks: what is measured, drawn, kept, divided and rounded."""
