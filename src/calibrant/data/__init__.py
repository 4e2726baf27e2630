"""Foreign values in, checked pairs out."""
