"""What predictions are worth to somebody who acts on them, and where to act."""
