"""What operators do with an index: build its next generation beside it, swap, go back."""
