"""What operators do with an index: reindex, copy, backup, check, doctor."""
