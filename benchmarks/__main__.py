"""python -m benchmarks, the same as python -m bert_tf benchmark."""

import sys

from benchmarks.command_line import main

if __name__ == "__main__":
    sys.exit(main(["benchmark", *sys.argv[1:]]))
