"""Reading, writing and converting pretrained and trained weights."""
