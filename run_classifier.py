"""Fine-tunes BERT on a sentence task: python run_classifier.py --task_name=MRPC"""

import sys

from bert_tf.commands.classifier import main

if __name__ == "__main__":
    sys.exit(main(sys.argv))
