"""What DeepScope itself writes into a trace, and how it is read back."""
