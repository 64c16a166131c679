"""The whole run: what its time goes to, and further windows where the first one is not like it."""
