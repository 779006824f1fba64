"""The model card of a trained model: Markdown, with Hugging Face's block of metadata."""
