"""A profile made ready for questions about it: by place, by call, per step."""
