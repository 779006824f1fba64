"""What TF_CONFIG may say, what is said of mistakes, and that the recipes in docs/multi_worker.md make a good one."""

import json
import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest
import yaml
from tensorflow.python.distribute import multi_worker_util

from bert_tf.errors import DeviceError
from bert_tf.runtime import cluster

PAGE = Path(__file__).resolve().parents[2] / "docs" / "multi_worker.md"
TWO = {"worker": ["a:2222", "b:2222"]}
FIRST = {"type": "worker", "index": 0}


def read(jobs=None, task=None, **more):
    parts = {"cluster": jobs, "task": task, **more}
    return cluster.read_cluster({"TF_CONFIG": json.dumps({key: value for key, value in parts.items() if value is not None})})


def worker(jobs, task_type, index):
    return read(jobs, {"type": task_type, "index": index})


@pytest.mark.parametrize("text", [None, " \n", "{}", '{"cluster": {"chief": ["a:1"]}, "task": {"type": "chief", "index": 0}}'])
def test_one_machine(text):
    assert cluster.read_cluster({} if text is None else {"TF_CONFIG": text}) is None


def test_workers_are_in_the_order_of_tensorflow():
    second = worker({"worker": ["b:2222", "a:2222", "c:1"]}, "worker", 1)
    assert (second.own.task_type, second.own.index, second.own.host, second.own.port) == ("worker", 1, "a", 2222)
    assert [str(peer) for peer in second.peers] == ["worker 0 (b:2222)", "worker 2 (c:1)"]
    jobs = {"worker": ["a:1", "b:1"], "chief": ["c:1"]}
    assert [str(each) for each in worker(jobs, "worker", 0).workers] == ["chief (c:1)", "worker 0 (a:1)", "worker 1 (b:1)"]
    for name, index in (("worker", 0), ("worker", 1), ("chief", 0)):
        second = worker(jobs, name, index)
        assert second.position == multi_worker_util.id_in_cluster(jobs, name, index)
        assert second.is_chief == multi_worker_util.is_chief(jobs, name, index)


@pytest.mark.parametrize(
    ("address", "host", "port"),
    [
        ("host-a.example.com:2222", "host-a.example.com", 2222),
        ("bert_tf-0.bert-tf:65535", "bert_tf-0.bert-tf", 65535),
        ("10.0.0.7:1", "10.0.0.7", 1),
        ("[2001:db8::7]:2222", "2001:db8::7", 2222),
    ],
)
def test_names_and_numbers_are_addresses(address, host, port):
    own = worker({"worker": [address, "b:1"]}, "worker", 0).own
    assert (own.host, own.port, own.address) == (host, port, address)


def test_what_other_systems_add_is_ignored():
    assert read(TWO, {**FIRST, "trial": "1"}, environment="cloud", job={"scale_tier": "CUSTOM"}) is not None


EXAMPLE = '{"cluster": {"worker": ["host-a:2222", "host-b:2222"]}, "task": {"type": "worker", "index": 0}}'
OWN = 'such as "task": {"type": "worker", "index": 0}'
JOBS = {  # values of `cluster`, as JSON
    "{}": "cluster {} names no task type; write the addresses",
    '["a:1"]': 'cluster ["a:1"] names no task type; write the addresses',
    '{"workers": ["a:1"]}': 'cluster has the unknown task type "workers"; only chief and worker are known',
    '{"worker": ["a:1"], "ps": ["c:1"]}': 'cluster has "ps": the weights are on every machine',
    '{"worker": ["a:1"], "evaluator": ["c:1"]}': 'cluster has "evaluator": the chief evaluates once training is over',
    '{"worker": ["a:1"], "master": ["c:1"]}': 'cluster has "master": this is the old name of chief; write chief',
    '{"chief": ["a:1"], "worker": []}': "cluster.worker is empty; write its addresses as",
    '{"worker": "a:1,b:1"}': 'cluster.worker is not a list: "a:1,b:1"; write its addresses as ["host:port", ...], or leave',
    '{"chief": ["a:1", "b:1"]}': "cluster.chief has 2 addresses; there is one chief: list the others under worker",
    '{"worker": ["a:1", "b"]}': 'cluster.worker[1] is "b"; write it as "host:port", such as "host-a:2222"',
    '{"worker": [2222]}': "cluster.worker[0] is 2222; write it as",
    **{  # no host, an URL, a space, an empty label, bare IPv6
        f'{{"worker": ["{address}"]}}': f'cluster.worker[0] is "{address}"; write it as'
        for address in (":1", "grpc://a:1", "a:1 ", "a..b:1", "::1:2222")
    },
    '{"worker": ["a:0"]}': 'cluster.worker[0] is "a:0"; a port is a number from 1 to 65535',
    '{"worker": ["a:65536"]}': 'cluster.worker[0] is "a:65536"; a port is a number from 1 to',
    '{"worker": ["a:1", "b:1", "A:1"]}': "worker 0 (a:1) and worker 2 (A:1) have the same address; give each process a port or",
    '{"chief": ["a:1"], "worker": ["a:1"]}': "chief (a:1) and worker 0 (a:1) have the same address",
}
TASKS = {  # values of `task` beside two workers, as JSON
    '{"index": 0}': f'task {{"index": 0}} has no type; say which process this one is, {OWN}',
    '"worker"': 'task "worker" has no type; say which process',
    '{"type": "chief", "index": 0}': 'task.type is "chief", which cluster does not have: write worker',
    '{"type": [], "index": 0}': "task.type is [], which cluster does not have",
    '{"type": "evaluator", "index": 0}': 'task.type is "evaluator", which cluster does not have: the chief evaluates',
    '{"type": "worker"}': "task has no index; write the place of this process under cluster.worker, counted from 0",
    '{"type": "worker", "index": "1"}': 'task.index is "1"; write a whole number without quotes, counted from 0',
    '{"type": "worker", "index": true}': "task.index is true; write a whole number",
    '{"type": "worker", "index": 2}': "task.index is 2, and the addresses of cluster.worker are counted from 0: write 0 to 1",
    '{"type": "worker", "index": -1}': "task.index is -1, and the addresses",
}
MISTAKES = {
    '{"cluster":\n }': f"line 2: not JSON: Expecting value at character 2; write {EXAMPLE}",
    '["a:2222"]': f'["a:2222"] is not an object in braces; write {EXAMPLE}',
    '{"task": {}}': f"no cluster; write the addresses of all processes, the same for each: {EXAMPLE}",
    '{"cluster": {"worker": ["a:1"]}}': f"no task; say which process this one is, {OWN}",
    '{"cluster": {"worker": ["a:1"]}, "task": {"type": "worker", "index": 1}}': "task.index is 1, and the addresses of"
    " cluster.worker are counted from 0: 0 is the only one",
    **{f'{{"cluster": {jobs}, "task": {json.dumps(FIRST)}}}': message for jobs, message in JOBS.items()},
    **{f'{{"cluster": {json.dumps(TWO)}, "task": {task}}}': message for task, message in TASKS.items()},
}


@pytest.mark.parametrize("text", MISTAKES, ids=lambda text: text[:60])
def test_a_mistake_is_one_line(text):
    with pytest.raises(DeviceError) as caught:
        cluster.read_cluster({"TF_CONFIG": text})
    assert str(caught.value).startswith(f"TF_CONFIG: {MISTAKES[text]}")
    assert "\n" not in str(caught.value)


def test_a_long_value_is_cut():
    with pytest.raises(DeviceError) as caught:
        read({"worker": ["x" * 1000]}, FIRST)
    assert len(str(caught.value)) < 200


def test_the_example_of_the_page_is_two_machines():
    (line,) = re.findall(r"^    export TF_CONFIG='(.*)'$", PAGE.read_text(), re.MULTILINE)
    assert len(cluster.read_cluster({"TF_CONFIG": line}).workers) == 2


def block(language):
    (code,) = re.findall(rf"^```{language}\n(.*?)^```$", PAGE.read_text(), re.DOTALL | re.MULTILINE)
    return code


@pytest.fixture
def programs(tmp_path):
    """A folder of programs that stand for the real ones; `python` prints what it is given."""
    folder = tmp_path / "bin"
    folder.mkdir()

    def add(name, text):
        (folder / name).write_text(f"#!{shutil.which('bash')}\n{text}\n")
        (folder / name).chmod(0o755)

    add("python", 'echo "$TF_CONFIG"; echo "$@" >&2; exit ${FAIL:-0}')
    return add


def shell(tmp_path, script, **variables):
    environment = {"PATH": f"{tmp_path / 'bin'}:{os.environ['PATH']}", **variables}
    return subprocess.run(["bash", "-c", script], env=environment, capture_output=True, text=True, check=False, timeout=20)


@pytest.fixture
def slurm(tmp_path, programs):
    """Runs the page's script on three nodes."""
    programs("scontrol", 'if [ "$1 $2" = "show hostnames" ]; then printf "%s\\n" n1 n2 n7; else echo "scontrol $*"; fi')
    programs("srun", 'shift; for SLURM_NODEID in 0 1 2; do export SLURM_NODEID; "$@" || status=$?; done; exit ${status:-0}')

    def run(**variables):
        return shell(tmp_path, block("bash"), SLURM_JOB_ID="1234567", SLURM_JOB_NODELIST="n[1-2,7]", **variables)

    return run


def test_the_slurm_script_gives_each_node_its_place(slurm):
    result = slurm()
    assert result.returncode == 0, result.stderr
    clusters = [cluster.read_cluster({"TF_CONFIG": line}) for line in result.stdout.splitlines()]
    assert [each.own.address for each in clusters] == ["n1:24567", "n2:24567", "n7:24567"]
    assert [each.position for each in clusters] == [0, 1, 2]
    assert result.stderr.splitlines()[0].startswith("run_classifier.py --task_name=MRPC --strategy=multi_worker ")


@pytest.mark.parametrize(("status", "restarts", "again"), [(75, "", True), (75, "4", True), (75, "5", False), (2, "", False)])
def test_the_slurm_script_queues_again_after_a_loss_but_not_for_ever(slurm, status, restarts, again):
    result = slurm(FAIL=str(status), SLURM_RESTART_COUNT=restarts)
    assert result.returncode == status
    assert ("scontrol requeue 1234567" in result.stdout) == again


@pytest.mark.usefixtures("programs")
def test_the_kubernetes_manifest_gives_each_pod_its_place(tmp_path):
    service, _, claim, job = manifest()
    pod, port = job["spec"]["template"]["spec"], service["spec"]["ports"][0]["port"]
    (container,) = pod["containers"]
    variables = {entry["name"]: entry["value"] for entry in container["env"]}
    addresses = [f"{job['metadata']['name']}-{index}.{pod['subdomain']}:{port}" for index in range(2)]
    for index in range(job["spec"]["completions"]):
        result = shell(tmp_path, container["args"][0], JOB_COMPLETION_INDEX=str(index), **variables)
        of_pod = cluster.read_cluster({"TF_CONFIG": result.stdout})
        assert ([each.address for each in of_pod.workers], of_pod.position) == (addresses, index)
    assert claim["kind"] == "PersistentVolumeClaim"


def manifest():
    return list(yaml.safe_load_all(block("yaml")))
