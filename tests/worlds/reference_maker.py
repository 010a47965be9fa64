"""Few blocks in two counties."""

from spine_maker import Block

BLOCKS = [
    Block("17", f"{county:03}", f"00{tract}000", "1", f"{1000 + i}", "9999", "10000", f"{100 * (i % 3):05}")
    for county in (31, 43)
    for tract in (1, 2)
    for i in range(3)
]
