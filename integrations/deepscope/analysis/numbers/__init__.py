"""The numbers, one module each: time, waits, idle, memory, FLOPs, phases, the cost of recording."""
