"""The dashboard: what its pages ask, answered from profiles and traces, and the servers that show them."""
