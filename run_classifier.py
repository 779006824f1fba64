"""Fine-tunes BERT on a sentence task: python run_classifier.py --task_name=MRPC"""

import sys

from bert_tf.__main__ import run

if __name__ == "__main__":
    sys.exit(run(["bert_tf", "classifier", *sys.argv[1:]]))
