"""Which map to use, what it gains, and maps that need a test of calibration."""
