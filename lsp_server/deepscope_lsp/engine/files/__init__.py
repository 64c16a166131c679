"""Which recorded file is which file here, and where its lines stand now."""
