"""Files of torch.save as weights: pytorch_model.bin, by a reader that runs no code (docs/checkpoints.md)."""

from bert_tf.extension import Extension

EXTENSION = Extension(weight_files=dict.fromkeys((".bin", ".pt", ".pth"), f"{__name__}.torch_archive:TorchArchive"))
