class CheckpointState:
    model_checkpoint_path: str
    all_model_checkpoint_paths: list[str]
    all_model_checkpoint_timestamps: list[float]
