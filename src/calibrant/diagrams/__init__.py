"""Reliability diagrams: curves as data, which draw themselves.

- `smooth.reliability_diagram`: the paper's figure, whose area is the SmoothECE;
- `binned.binned_diagram`, `isotonic.isotonic_diagram`, `cumulative.cumulative_diagram`: the others,
  in the same form;
- `group.Diagrams`: several on one axis, or side by side.
"""
