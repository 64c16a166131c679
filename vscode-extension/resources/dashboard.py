"""Serves TensorBoard for the extension: on the loopback alone, on a free port, for as long as the extension lives.

Prints `{"url": ...}` once it answers. It ends when its standard input closes, so that nothing is left behind even when
the editor is killed.
"""

import json
import os
import sys

from tensorboard import program


def main(arguments):
    """Starts the server and waits for the end of standard input."""
    board = program.TensorBoard()
    board.configure(argv=[sys.argv[0], *arguments, "--host", "127.0.0.1", "--port", "0", "--load_fast", "false"])
    sys.stdout.write(json.dumps({"url": board.launch()}) + "\n")
    sys.stdout.flush()
    sys.stdin.read()
    os._exit(0)  # its threads do not end by themselves


if __name__ == "__main__":
    main(sys.argv[1:])
