"""What holds memory while a window is open, told by identity: `profile_memory`."""
