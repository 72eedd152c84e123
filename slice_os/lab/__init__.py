"""The laboratory: training, evaluation, topics and the papers. Nothing outside imports it."""
