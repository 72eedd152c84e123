"""What operators do with an index: its next generation, the way back, copies of it."""
