"""What is started on which node, and what its end means; Ray is a double (test_sweep_launch.py has a cluster)."""

import logging
import signal
import sys
import threading
import types

import pytest

from bert_tf.errors import FlagError, LostPeerError
from bert_tf.extensions.sweep import ray_launch, ray_node, table
from bert_tf.extensions.sweep.command import SweepSettings, _command

TASKS = ("RTE", "MRPC")
FINISHED, FAILED_RUNS = (0, "table"), (2, "error: 1 of 6 runs failed, the first: a: no memory")
WRONG = (1, "No module named bert_tf")


WHOLE = {"CPU": 8.0, "GPU": 2.0}


class RayError(Exception):
    pass


class NodeDiedError(RayError):
    pass


class Ray:
    """A cluster that answers at once; `leaders` are answers by node: an end, an error, or None for a task that waits."""

    def __init__(self, leaders, blind=(), dead=()):
        self.leaders, self.blind, self.dead = leaders, blind, dead
        self.started, self.cancelled, self.initialized = {}, [], []
        self.exceptions = types.SimpleNamespace(RayError=RayError)
        self.util = types.SimpleNamespace(scheduling_strategies=self)
        self.cloudpickle = types.SimpleNamespace(register_pickle_by_value=lambda _: None)

    def is_initialized(self):
        return False

    def init(self, **values):
        self.initialized.append(values["address"])

    def shutdown(self):
        self.initialized.append(None)

    def nodes(self):
        rows = {"head": {"memory": 1.0}, **{name: WHOLE for name in (*self.leaders, *self.blind, *self.dead)}}
        alive = [{"NodeID": f"id-{name}", "NodeName": name, "Resources": had, "Alive": True} for name, had in rows.items()]
        return [*alive, {"NodeID": "gone", "NodeName": "gone", "Resources": {"CPU": 4.0}, "Alive": False}]

    def NodeAffinitySchedulingStrategy(self, node, *, soft):  # noqa: N802
        assert soft is False
        return node.removeprefix("id-")

    def remote(self, function):
        def options(*, scheduling_strategy, **values):
            assert values.pop("max_retries") == 0

            def begin(*arguments):
                ref = scheduling_strategy, function
                if function is ray_node.lead:
                    self.started[ref] = values, arguments
                return ref

            return types.SimpleNamespace(remote=begin)

        return types.SimpleNamespace(options=options)

    def get(self, ref, timeout):  # noqa: ARG002
        node, function = ref
        value = node not in self.blind if function is ray_node.sees else self.leaders[node]
        if node in self.dead or isinstance(value, Exception):
            raise NodeDiedError
        return value

    def wait(self, refs, num_returns=1, timeout=None):
        del num_returns, timeout
        return [ref for ref in refs if self.leaders[ref[0]] is not None or ref in self.cancelled], []

    def cancel(self, ref):
        self.cancelled.append(ref)


@pytest.fixture
def launch(monkeypatch, tmp_path, caplog):
    """Returns a function that launches on a double, with results of some runs in the folder."""
    monkeypatch.setattr(ray_launch, "_GRACE_S", 0.0)
    monkeypatch.delenv("RAY_ADDRESS", raising=False)
    caplog.set_level(logging.INFO)

    def of(ray, names=(), results=("MRPC-trial10", "MRPC-trial9", "RTE-trial0")):
        modules = {"ray": ray, "ray.exceptions": ray.exceptions, "ray.util": ray.util, "ray.util.scheduling_strategies": ray}
        for name, module in modules.items():
            monkeypatch.setitem(sys.modules, name, module)
        for name in results:
            table.write(tmp_path, table.Result(name, name.partition("-")[0], 1, {}))
        return [result.name for result in ray_launch.lead(["-m", "bert_tf"], tmp_path, names, TASKS)]

    return of


def test_a_leader_reserves_its_node_of_those_that_are_alive_and_offer_cpus(launch, tmp_path, monkeypatch):
    passed = {"GLUE_DIR": "/data/glue", "HF_TOKEN": "t", "https_proxy": "http://p"}
    for name, value in {**passed, "HOME": "/h"}.items():
        monkeypatch.setenv(name, value)
    ray = Ray({"a": FINISHED, "b": FINISHED})
    launch(ray)
    whole = {"num_cpus": 8.0, "num_gpus": 2.0}
    assert {node: values for (node, _), (values, _) in ray.started.items()} == {"a": whole, "b": whole}
    command, _, environment, log = ray.started["a", ray_node.lead][1]
    assert command == ["-m", "bert_tf"]
    assert {name: environment.get(name) for name in (*passed, "HOME")} == {**passed, "HOME": None}
    assert log == str(tmp_path / "leaders" / "a-id-a.txt")
    assert ray.initialized == ["auto", None]


def test_results_are_those_of_the_plan_and_of_a_search_by_task_and_number(launch):
    assert launch(Ray({"a": FINISHED}), ["RTE-trial0", "MRPC-trial9"]) == ["RTE-trial0", "MRPC-trial9"]
    others = ("MRPC-learning_rate=2e-05-seed1", "CoLA-trial0", "MRPC-trial10", "MRPC-trial9", "RTE-trial0")
    assert launch(Ray({"a": FAILED_RUNS}), results=others) == ["RTE-trial0", "MRPC-trial9", "MRPC-trial10"]


def test_a_lost_node_is_one_line_and_no_error_and_a_busy_one_is_not_waited_for(launch, caplog):
    launch(Ray({"a": FINISHED, "b": NodeDiedError()}, dead=["c"]))
    assert [record.message for record in caplog.records if record.levelno == logging.WARNING] == [
        f"{node}: lost (NodeDiedError); its runs are left to the other nodes" for node in "cb"
    ]
    ray = Ray({"a": FINISHED, "busy": None})
    launch(ray)
    assert [node for node, _ in ray.cancelled] == ["busy"]


@pytest.mark.parametrize("leaders", [{"a": NodeDiedError()}, {"a": WRONG}])
def test_without_a_leader_that_has_all_results_the_same_command_continues(launch, leaders, caplog):
    with pytest.raises(LostPeerError, match="3 runs have a result, no leader has all; the same command continues"):
        launch(Ray(leaders))
    assert launch(Ray(leaders), ["MRPC-trial9"]) == ["MRPC-trial9"]  # which is the whole plan
    if leaders["a"] == WRONG:
        assert "a: its leader ended with status 1: No module named bert_tf" in caplog.text


def test_a_folder_that_a_node_does_not_see_is_refused(launch, tmp_path):
    with pytest.raises(FlagError, match=f"^--output_dir={tmp_path}: not seen by b, c; name a folder that all nodes share$"):
        launch(Ray({"a": FINISHED}, blind=["b", "c"]))
    with pytest.raises(LostPeerError, match="no node with CPUs or GPUs answers"):
        launch(Ray({}, dead=["c"]))
    assert list(tmp_path.glob(".*.token")) == []


def test_sigterm_stops_the_leaders_first(launch):
    assert threading.current_thread() is threading.main_thread()  # no other can handle signals
    ray = Ray({"a": None})
    ray.wait = lambda _, **values: signal.getsignal(signal.SIGTERM)(signal.SIGTERM, None) if "timeout" in values else ([], [])
    before = signal.getsignal(signal.SIGTERM)
    with pytest.raises(KeyboardInterrupt):
        launch(ray)
    assert [node for node, _ in ray.cancelled] == ["a"]
    assert ray.initialized == ["auto", None]
    assert signal.getsignal(signal.SIGTERM) is before


def test_a_missing_package_is_one_line(monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(FlagError, match="^--launch=ray needs Ray: pip install 'ray>="):
        ray_launch.lead([], tmp_path, [], TASKS)


@pytest.mark.parametrize(
    ("address", "problem"),
    [
        ("127.0.0.1:9", r"no cluster at 127.0.0.1:9 \(.*Connection refused\); ray start --head starts one"),
        ("ray://nowhere.invalid:10001", r"no cluster at ray://nowhere.invalid:10001 \("),
        (None, r"no cluster at auto \(Could not find any running Ray instance\)"),
    ],
)
def test_without_a_cluster_it_says_where_none_is(launch, monkeypatch, address, problem):
    ray = Ray({})

    def init(**_):
        raise ConnectionError("Could not find any running Ray instance. Please specify the one to connect to.")

    ray.init = init
    if address:
        monkeypatch.setenv("RAY_ADDRESS", address)
    with pytest.raises(FlagError, match=f"^--launch=ray: {problem}"):
        launch(ray)


def test_a_leader_has_the_settings_of_the_command_and_whole_paths(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    settings = SweepSettings("a.yaml", "out", slots=2, search="tpe", trials=9, hold_out=0.5, from_mnli=True, launch="ray")
    flags = [f"--output_dir={tmp_path}/out", "--slots=2", "--search=tpe", "--trials=9", "--hold_out=0.5", "--from_mnli=True"]
    command = _command(settings)
    assert command[:4] == ["-m", "bert_tf", "sweep", f"{tmp_path}/a.yaml"]
    assert sorted(command[4:]) == sorted(flags)


def test_a_node_runs_the_leader_as_a_process_and_reads_its_last_line(tmp_path):
    command = ["-c", "import os; print(os.getcwd(), os.environ['A'], 'last', sep='\\n'); raise SystemExit(3)"]
    log = tmp_path / "log"
    assert ray_node.lead(command, str(tmp_path), {"A": "b"}, str(log)) == (3, "last")
    assert log.read_text() == f"{tmp_path}\nb\nlast\n"


def test_a_cancelled_task_stops_the_leader_and_waits_for_it(tmp_path, monkeypatch):
    code = (
        "import signal, sys, time; signal.signal(15, lambda *_: sys.exit('saved')); print('ready', flush=True); time.sleep(60)"
    )
    log = tmp_path / "log"

    def cancelled(_):
        if log.read_text():
            raise KeyboardInterrupt

    monkeypatch.setattr(ray_node.time, "sleep", cancelled)
    assert ray_node.lead(["-c", code], str(tmp_path), {}, str(log)) == (1, "saved")
