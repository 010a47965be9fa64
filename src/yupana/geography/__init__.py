"""Geographic spines: hierarchies of geounits over census blocks, and how far other areas are from them. All public."""
