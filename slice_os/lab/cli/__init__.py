"""The laboratory's verbs."""
