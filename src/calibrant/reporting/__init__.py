"""Results to one self-contained page."""
