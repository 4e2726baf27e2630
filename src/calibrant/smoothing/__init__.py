"""Smooth functions out of a sketch, at any bandwidth."""
