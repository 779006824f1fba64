"""python -m bert_tf COMMAND"""

import sys

from bert_tf.commands import classifier

COMMANDS = {"classifier": classifier.main}


def main(argv: list[str]) -> int:
    """Runs the command named first; returns its exit status."""
    if len(argv) < 2 or argv[1] not in COMMANDS:
        print(f"usage: python -m bert_tf COMMAND [FLAGS]; commands: {', '.join(COMMANDS)}", file=sys.stderr)
        return 2
    return COMMANDS[argv[1]](argv[1:])


if __name__ == "__main__":
    sys.exit(main(sys.argv))
