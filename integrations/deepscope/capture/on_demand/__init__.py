"""Recording a job that is already running: dormant until `deepscope attach` asks, and again after each window."""
