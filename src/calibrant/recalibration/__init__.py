"""Maps from a probability to a better one."""
