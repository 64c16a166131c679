"""`python -m deepscope` is the command `deepscope`."""

from deepscope.cli import main

main()
