"""The numbers, one module each: time, waits, idle, memory, FLOPs, steps, phases, the cost of recording."""
