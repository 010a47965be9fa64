"""TopDown on confidential counts: the door, the run, and how accurate it is."""
