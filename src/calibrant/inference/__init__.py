"""How sure: intervals, noise floor, tests, comparisons."""
