"""The one data structure: a small table of sums that merges by addition."""
