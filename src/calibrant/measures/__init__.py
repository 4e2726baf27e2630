"""Numbers out of a sketch or its atoms."""
