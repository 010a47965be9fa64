"""The posterior of the blocks: what noisy answers and a prior learned from them say of each block of a parent."""
