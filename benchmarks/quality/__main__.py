"""The command: python -m benchmarks.quality --task=SWAG --data_dir=FOLDER"""

import sys

from benchmarks.quality.command_line import main

if __name__ == "__main__":
    sys.exit(main(["benchmarks.quality", *sys.argv[1:]]))
