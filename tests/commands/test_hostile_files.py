"""What every command says of a path that is no file: one line, at once."""

import os

import pytest

from bert_tf import __main__ as front

WANTED = {
    "pipe": "it is a pipe, which can be read only once",
    "loop": "leads to itself",
    "device": "it is a device, which may never end",
    "long name": "File name too long",
}
READERS = {
    "classifier vocabulary": "classifier {train} --vocab_file={path}",
    "classifier configuration": "classifier {train} --bert_config_file={path}",
    "classifier data": "classifier {model} --task_name=custom --file_format=tsv --train_file={path} --dev_file={path}",
    "evaluate job": "evaluate --job={path}",
    "evaluate data": "evaluate --job={job}",
    "predict job": "predict --job={path}",
    "predict vocabulary": "predict --checkpoint={run} --vocab_file={path} --input={data}/test.tsv --output={out}/o.tsv",
    "memory report": "memory report {path}",
    "memory peak": "memory peak {path}",
    "memory diff": "memory diff {path} {path}",
    "memory plan": "memory plan --gpu_memory_mb=1000 --bert_config_file={path}",
    "data check": "data check --task_name=custom --file_format=tsv --train_file={path} --vocab_file={vocab}",
    "data check vocabulary": "data check {data} --task_name=MRPC --vocab_file={path}",
}
# Folders that cannot be looked into are not called missing.
FOLDERS = {
    "run": "classifier --task_name=MRPC --do_eval --output_dir={path}",
    "predicted run": "predict --checkpoint={path} --task_name=MRPC --input=- --output=-",
    "reported run": "report {path}",
    "profiled run": "profile {path}",
    "checked data": "data check {path} --task_name=MRPC",
    "data": "classifier --task_name=MRPC --data_dir={path} --output_dir={out}/run",
}
CASES = [(name, kind) for name in READERS for kind in WANTED]
CASES += [(name, kind) for name in FOLDERS for kind in ("loop", "long name")]


def line_of(name: str, path: object, project, run, out) -> list[str]:
    job = out / "job.json"
    job.write_text(
        f'{{"checkpoints": "{run}", "output_dir": "{out}/eval",'
        f' "tasks": [{{"name": "MRPC", "file": "{path}", "split": "dev"}}]}}'
    )
    model = f"--init_checkpoint={project.init_checkpoint} --vocab_file={project.vocab_file} --output_dir={out}/run"
    model += f" --bert_config_file={project.bert_config_file}"
    filled = {**READERS, **FOLDERS}[name].format(
        path=path, run=run, out=out, job=job, data=project.data_dir, vocab=project.vocab_file, model=model,
        train=f"--task_name=MRPC --data_dir={project.data_dir} {model}",
    )  # fmt: skip
    return ["bert_tf", *filled.split()]


@pytest.mark.parametrize(("name", "kind"), CASES)
def test_every_command_says_why_it_cannot_read_a_path(name, kind, project, run, tmp_path, capfd):
    """What a path may be: tests/io/test_files.py."""
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "loop").symlink_to("loop")
    path = {"device": "/dev/zero", "long name": tmp_path / ("n" * 300)}.get(kind, tmp_path / kind)
    status = front.main(line_of(name, path, project, run, tmp_path))
    errors = [line for line in capfd.readouterr().err.splitlines() if line.startswith("error: ")]
    assert status == 2
    assert len(errors) == 1
    assert "internal error" not in errors[0]
    assert WANTED[kind] in errors[0]
