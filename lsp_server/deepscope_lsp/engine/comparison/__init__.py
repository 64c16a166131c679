"""A profile beside an older one."""
