"""Can I trust these probabilities? Measure, show and repair calibration."""
