"""What a snapshot of torch's memory tells: the history carried out again, and whose each live block is."""
