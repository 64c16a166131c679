"""Programs that users run and read; `deepscope demo` copies them out of the package: they count as user code."""
