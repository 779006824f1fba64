"""Search for settings with Optuna: a study for each task, in a journal that processes and machines share."""

from __future__ import annotations

import itertools
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

from bert_tf import extras, run_layout
from bert_tf.errors import FlagError
from bert_tf.estimator import evaluations, run_folder
from bert_tf.extensions.report.run_files import is_number, mapping, read_object
from bert_tf.extensions.sweep import plan, table
from bert_tf.extensions.sweep.plan import PlannedRun, SweepFile
from bert_tf.io import lock

RANDOM, TPE = "random", "tpe"  # samplers

_JOURNAL = "study.journal"
_REDUCTION = 3  # a third of the runs go on from a rung; the next one is after three times as many steps
_LARGEST_STEP = 1 << 62


class Search:
    """Draws settings of runs, receives their results, and stops lagging runs by successive halving.

    Sampling by TPE (Bergstra et al., 2011) or at random; halving asynchronously (Li et al., 2020), on the evaluations that
    training writes (--eval_every_n_steps).
    """

    def __init__(
        self,
        file: SweepFile,
        folder: Path,
        *,
        sampler: str,
        trials: int,
        seconds: float | None,
        environment: Mapping[str, str],
        first: Sequence[Mapping[str, Any]] = (),
    ) -> None:
        """`trials` is the number of runs for each task, `seconds` the time after which no run starts; None for no end.

        Settings of `first` are trained before others are drawn, and count as trials.
        """
        optuna = _optuna()
        for task in file.tasks:  # reports misfits and missing files before the studies are created
            plan.planned(file, folder, task, file.seeds[0], file.first, environment)
        self._optuna, self._file, self._folder, self._trials, self._environment = optuna, file, folder, trials, environment
        self._sampler = sampler
        self._end = None if seconds is None else time.monotonic() + seconds
        storage = optuna.storages.JournalStorage(_opened(optuna.storages.journal, folder / _JOURNAL))
        rung = max(1, int(file.fixed.get("eval_every_n_steps", 1)))
        self._studies = {
            task: optuna.create_study(
                storage=storage,
                study_name=task,
                direction="maximize",
                pruner=optuna.pruners.SuccessiveHalvingPruner(rung, _REDUCTION),
                load_if_exists=True,
            )
            for task in file.tasks
        }
        with self._drawing():  # two leaders would add them twice
            for study in self._studies.values():
                self._note_search_space(study)
                for values in first:
                    study.enqueue_trial(dict(values), skip_if_exists=True)
        self._runs: dict[str, tuple[str, int]] = {}  # task and number of the trial, by name
        self._reported: dict[str, int] = {}  # last step reported to the study

    @property
    def total(self) -> int:
        """Number of runs, with those of an earlier command that had more trials."""
        return len({*itertools.product(self._studies, range(self._trials)), *self._runs.values()})

    @property
    def begun(self) -> list[str]:
        """Names of the runs that were begun, within the number of trials."""
        trials = ((task, trial.number) for task, study in self._studies.items() for trial in self._begun(study))
        return [_name(task, number) for task, number in trials if number < self._trials]

    def unfinished(self) -> Iterator[PlannedRun]:
        """Yields each unfinished run of other leaders and earlier commands once."""
        for task, study in self._studies.items():
            for trial in self._begun(study):
                name = _name(task, trial.number)
                if name in self._runs or trial.number >= self._trials:
                    continue
                if trial.state.is_finished():  # its result may be lost, or is of an earlier version
                    if table.read_result(self._folder, name) is None and (again := self.known(name)):
                        yield again
                else:
                    with self._drawing():  # a killed leader may have left a trial without all its settings
                        values = self._drawn(task, trial.number, self._optuna.trial.Trial(study, trial._trial_id))
                    yield self._planned(task, trial.number, values)

    def known(self, name: str) -> PlannedRun | None:
        """The run of that name, of any leader or command; None if it is of no trial, or of one that draws."""
        for task, study in self._studies.items():
            for trial in study.get_trials(deepcopy=False) if name.startswith(f"{task}-") else ():
                if _name(task, trial.number) == name and trial.params.keys() == self._distributions().keys():
                    return self._planned(task, trial.number, trial.params)
        return None

    def ask(self) -> PlannedRun | None:
        """Returns a new run of the task with the fewest; None if there are enough, or the time is over."""
        if self._end is not None and time.monotonic() > self._end:
            return None
        with self._drawing():
            counts = {task: len(self._begun(study)) for task, study in self._studies.items()}
            task = min(counts, key=lambda task: counts[task])
            if counts[task] >= self._trials:
                return None
            study = self._studies[task]
            study.sampler = self._new_sampler(counts[task])  # decides how settings are drawn together
            trial = study.ask()
            return self._planned(task, trial.number, self._drawn(task, trial.number, trial))

    def _drawing(self) -> AbstractContextManager[object]:
        """One process at a time draws."""
        return lock.claiming(self._folder / _JOURNAL, wait=True)

    def _drawn(self, task: str, number: int, trial: Any) -> dict[str, Any]:
        """Settings of a trial; those without a value are drawn."""
        self._studies[task].sampler = self._new_sampler(number)
        return {name: trial._suggest(name, choices) for name, choices in self._distributions().items()}

    def tell(self, result: table.Result) -> None:
        """A failed run stays unfinished in the study: the next command tries it again."""
        if result.error:
            return
        task, number = self._runs[result.name]
        states = self._optuna.trial.TrialState
        value = result.worth
        state = states.FAIL if value is None else states.PRUNED if result.pruned else states.COMPLETE
        self._studies[task].tell(number, value if state == states.COMPLETE else None, state=state, skip_if_finished=True)

    def lags(self, run: PlannedRun) -> bool:
        """Whether a run's last evaluation is behind those of others at its step; never at the run's last step."""
        lines = evaluations.read_evaluations(self._folder / run.name, up_to=_LARGEST_STEP)
        step = evaluations.step_of(lines[-1]) if lines else 0
        if step <= self._reported.get(run.name, 0):
            return False
        self._reported[run.name] = step
        task, number = self._runs[run.name]
        study = self._studies[task]
        known = study.get_trials(deepcopy=False)[number]
        if known.state.is_finished():  # a failure that an earlier version told, which is trained again
            return False
        trial = self._optuna.trial.Trial(study, known._trial_id)
        trial.report(float(lines[-1].get(run.metric) or 0.0), step)
        return bool(trial.should_prune()) and not is_at_end(run, self._folder)

    def _begun(self, study: Any) -> list[Any]:
        """Trials of a study, without settings that wait to be trained."""
        waiting = self._optuna.trial.TrialState.WAITING
        return [trial for trial in study.get_trials(deepcopy=False) if trial.state != waiting]

    def _note_search_space(self, study: Any) -> None:
        """FlagError if that of a study has another seed, other lists, or ranges of other kinds; only their ends may change.

        Optuna compares settings by their place in a list, and takes a range of another kind for another setting.
        """
        lists = {name: list(values) for name, values in self._file.grid.items()}
        ranges = {}
        for name, row in self._file.ranges.items():
            numbers = "whole numbers" if isinstance(row.low, int) else "numbers"
            ranges[name] = f"a range of {numbers}, {'with' if row.log else 'without'} log"
        seed = {"seeds": self._file.seeds[0]}  # earlier versions did not note it
        for attribute, now in (("seed", seed), ("lists", lists), ("ranges", ranges)):
            earlier = study.user_attrs.get(attribute)
            if earlier is None:
                study.set_user_attr(attribute, now)
            elif earlier != now:
                name = next(name for name in {**earlier, **now} if earlier.get(name) != now.get(name))
                was, is_now = earlier.get(name, f"none of its {attribute}"), now.get(name, f"none of the {attribute}")
                problem = f"{name}: was {was} in the search of {self._folder}, now {is_now}"
                raise FlagError(f"{problem}; name another --output_dir")

    def _planned(self, task: str, number: int, values: Mapping[str, Any]) -> PlannedRun:
        name = _name(task, number)
        self._runs[name] = task, number
        return plan.planned(self._file, self._folder, task, self._file.seeds[0], values, self._environment, name)

    def _distributions(self) -> dict[str, Any]:
        distributions = self._optuna.distributions
        choices = {name: distributions.CategoricalDistribution(values) for name, values in self._file.grid.items()}
        for name, row in self._file.ranges.items():
            kind = distributions.IntDistribution if isinstance(row.low, int) else distributions.FloatDistribution
            choices[name] = kind(row.low, row.high, log=row.log)
        return choices

    def _new_sampler(self, number: int) -> Any:
        """A sampler seeded by the trial's number, so that a resumed command does not repeat the first draws."""
        samplers, seed = self._optuna.samplers, self._file.seeds[0] + 1_000_003 * number
        if self._sampler == RANDOM:
            return samplers.RandomSampler(seed)
        return samplers.TPESampler(n_startup_trials=max(2, min(10, self._trials // 3)), constant_liar=True, seed=seed)


def is_at_end(run: PlannedRun, folder: Path) -> bool:
    """Whether the last evaluation is that of the last step: what is left takes seconds."""
    schedule = mapping(read_object(folder / run.name / run_layout.RECORD) or {}, run_folder.SCHEDULE)
    end = schedule.get(run_folder.STOPPED, schedule.get("steps"))
    lines = evaluations.read_evaluations(folder / run.name, up_to=_LARGEST_STEP)
    return bool(lines) and is_number(end) and evaluations.step_of(lines[-1]) >= end


def pruned(run: PlannedRun, folder: Path) -> table.Result:
    """The result of a run that was stopped: its last evaluation."""
    last = evaluations.read_evaluations(folder / run.name, up_to=_LARGEST_STEP)[-1]
    metrics = {name: float(value) for name, value in last.items() if name != "step" and value is not None}
    return table.result(run, steps=evaluations.step_of(last), metrics=metrics, pruned=True)


def _name(task: str, number: int) -> str:
    return f"{task}-trial{number}"


def _opened(journal: Any, path: Path) -> Any:
    """The journal, without the line that a kill or a full disk cut off, and after which it could not be read.

    A lock is a link to it: Optuna releases that of a killed process by the file's age, if the link leads to the file.
    """
    path = path.absolute()
    locks = journal.JournalFileSymlinkLock(str(path))
    if path.exists():
        locks.acquire()
        try:
            with path.open("r+b") as file:
                lines = file.read()
                file.truncate(lines.rfind(b"\n") + 1)
        finally:
            locks.release()
    return journal.JournalFileBackend(str(path), lock_obj=locks)


def _optuna() -> Any:
    try:
        import optuna
    except ImportError as error:
        raise FlagError(f"--search needs Optuna: {extras.install('search')}") from error
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    return optuna
