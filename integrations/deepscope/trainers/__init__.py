"""Recording with other trainers: a module each, imported by its users alone, since it imports its framework."""
