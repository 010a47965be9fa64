"""What was really lost: empirical and attribute losses, lower bounds, certificates. No true count is read here."""
