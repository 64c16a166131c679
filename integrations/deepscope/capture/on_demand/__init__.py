"""Recording a job that is already running: idle until `deepscope attach` asks, and again after each window."""
