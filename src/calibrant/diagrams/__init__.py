"""Curves out of a sketch, as data that can draw itself."""
