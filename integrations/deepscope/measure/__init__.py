"""Numbers of a model or a function without a trace: FLOPs by module and operator, latency and throughput."""
