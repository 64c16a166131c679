"""What labels, hovers and messages say."""
