"""Fine-tunes BERT on a sentence task: python run_classifier.py --task_name=MRPC"""

import sys

if __name__ == "__main__":
    try:
        from bert_tf.__main__ import run
    except ImportError as error:
        if error.name != "bert_tf":
            raise
        sys.stderr.write(f"error: {error}\n")  # the versions do not fit
        sys.exit(2)
    except KeyboardInterrupt:
        sys.stderr.write("error: stopped\n")  # before there is anything to go on from
        sys.exit(130)
    sys.exit(run(["bert_tf", "fine-tune", *sys.argv[1:]]))
