"""Methods of disclosure control that are not differentially private, on plain numbers. Public: no record is seen."""
