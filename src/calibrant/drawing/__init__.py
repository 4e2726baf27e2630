"""Plain arrays in, pictures out: matplotlib artists, Altair charts, and SVG text without either.

A picture is a `Panel` of marks (`marks.py`); the three renderers draw the same panel. Nothing in
this folder knows what the numbers mean.
"""
