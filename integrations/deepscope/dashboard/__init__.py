"""The dashboard: what its pages ask, answered from profiles and traces, and the doors that it stands behind."""
