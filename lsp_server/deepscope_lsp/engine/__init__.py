"""What is shown and why, as plain data: nothing here knows of the protocol."""
