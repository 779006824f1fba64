import shutil
import subprocess
import sys

import pytest

from tests.integration import commands


@pytest.fixture(scope="session")
def train_flags(project):
    """Flags of a run of 30 steps that saves every third."""

    def flags(output_dir, **extra):
        settings = {"num_train_epochs": 6, "learning_rate": 0.003, "save_checkpoints_steps": 3, "log_every_n_steps": 1}
        return project.flags(output_dir, do_train=True, **{**settings, **extra})

    return flags


@pytest.fixture(scope="session")
def finished(tmp_path_factory, train_flags):
    """The folder of a run that was trained, evaluated and used, and what the command said."""
    folder = tmp_path_factory.mktemp("finished") / "out"
    command = [sys.executable, "run_classifier.py", *train_flags(folder, do_eval=True, do_predict=True)]  # not forked
    result = subprocess.run(command, cwd=commands.PROJECT, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr
    return folder, result


@pytest.fixture
def copy(tmp_path, finished):
    return shutil.copytree(finished[0], tmp_path / "copy")
