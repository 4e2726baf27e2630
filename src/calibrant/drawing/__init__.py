"""Plain arrays to pictures; knows nothing of calibration."""
