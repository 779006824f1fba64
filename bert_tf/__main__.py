"""python -m bert_tf COMMAND"""

from __future__ import annotations

import sys

from bert_tf.commands import classifier, data, devices, reproduce


def _benchmark(argv: list[str]) -> int:
    from bert_tf.commands import benchmark  # its tables are of no use to the others

    return benchmark.main(argv)


def _evaluate(argv: list[str]) -> int:
    from bert_tf.commands import evaluate

    return evaluate.main(argv)


def _memory(argv: list[str]) -> int:
    from bert_tf.commands import memory

    return memory.main(argv)


def _predict(argv: list[str]) -> int:
    from bert_tf.commands import predict

    return predict.main(argv)


def _profile(argv: list[str]) -> int:
    from bert_tf.commands import profile

    return profile.main(argv)


def _report(argv: list[str]) -> int:
    from bert_tf.commands import report

    return report.main(argv)


COMMANDS = {
    "classifier": classifier.main,
    "evaluate": _evaluate,
    "predict": _predict,
    "benchmark": _benchmark,
    "devices": devices.main,
    "memory": _memory,
    "profile": _profile,
    "reproduce": reproduce.main,
    "report": _report,
    "data": data.main,
}


def main(argv: list[str]) -> int:
    """Runs the command named first; returns its exit status."""
    if len(argv) < 2 or argv[1] not in COMMANDS:
        print(f"usage: python -m bert_tf COMMAND [FLAGS]; commands: {', '.join(COMMANDS)}", file=sys.stderr)
        return 2
    return COMMANDS[argv[1]](argv[1:])


if __name__ == "__main__":
    sys.exit(main(sys.argv))
