"""Speed, memory, accuracy and coverage, each measured by one command."""
