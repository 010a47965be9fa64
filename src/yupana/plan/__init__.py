"""What will be measured, at what noise, and what that costs: public objects, computed before any data are seen."""
