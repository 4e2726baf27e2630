"""Sketches out of what is not an array: frames, files, SQL."""
