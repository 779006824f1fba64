"""Downloads published data sets into the folders that tasks read.

The sha256 is known only for the parts of MRPC: the other files were not reachable when this was written. For those
the received sha256 goes to `fetched.sha256` and is compared on the next call, which detects a change but does not
prove the file correct; `--sha256` supplies sums from elsewhere.
"""

from __future__ import annotations

import contextlib
import dataclasses
import fnmatch
import http.client
import os
import shutil
import tempfile
import urllib.error
import urllib.request
import zipfile
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path, PurePosixPath
from typing import Any, NamedTuple

from bert_tf import home
from bert_tf.errors import DataError, FlagError
from bert_tf.io import atomic, encodings, files, lock, progress
from bert_tf.io.log_form import log
from bert_tf.library.keywords import takes
from bert_tf.operations.command import Call, Command, warnings_only
from bert_tf.settings import read_settings, setting
from bert_tf.tasks import names, tables, text_lines
from bert_tf.tasks.registry import canonical_name, folder_name
from bert_tf.tasks.settings import CUSTOM

SITE = "https://dl.fbaipublicfiles.com/"
SUMS_NAME = "fetched.sha256"

Say = Callable[[str], None]

_DOWNLOADS = ".downloads"
_COMPLETE = ".fetched"  # inside a folder with other files: the complete data set, until its files are moved up
_MOST_BYTES = 1 << 31  # of a published file; the largest has 0.5 GB
_MOST_UNPACKED = 1 << 32  # bytes; XNLI's translations are 1.2 GB
_BLOCK = 1 << 16
_TIMEOUT_S = 30.0
_MRPC_COLUMNS = ("1", "2", "3", "4", "5")  # label, two ids, two texts
_BOM = "\ufeff"


@dataclasses.dataclass(frozen=True)
class FetchSettings:
    task: str = setting(None, "name of a task", positional=True, required=True)
    data_dir: str | None = setting(
        None, "parent of the folder TASK; default: the project's data/, where the classifier looks", written=True
    )
    from_: str | None = setting(None, "folder with the published files; nothing is downloaded")
    sha256: tuple[str, ...] | None = setting(
        None, "checksums of the published files, comma-separated; default: MRPC's are known, others are printed"
    )


class Part(NamedTuple):
    address: str  # below SITE
    name: str  # file name in a folder
    sha256: str | None = None  # None if unknown

    @property
    def url(self) -> str:
        return SITE + self.address


class Dataset(NamedTuple):
    """A folder and the published files it is made from."""

    folder: str
    parts: tuple[Part, ...]
    files: tuple[str, ...]  # its contents: names or patterns
    make: Callable[[Dataset, Sequence[Path], Path], None]  # from parts into a folder


def _unzip(dataset: Dataset, parts: Sequence[Path], folder: Path) -> None:
    """Extracts the wanted files from an archive, at any depth; the shallowest of equal names."""
    [archive] = parts
    try:
        with zipfile.ZipFile(archive) as contents:
            entries = sorted(
                (entry for entry in contents.infolist() if not entry.is_dir()), key=lambda e: e.filename.count("/")
            )
            wanted: dict[str, zipfile.ZipInfo] = {}
            for entry in entries:
                name = PurePosixPath(entry.filename).name
                if any(fnmatch.fnmatchcase(name, pattern) for pattern in dataset.files):
                    wanted.setdefault(name, entry)
            for pattern in dataset.files:
                if not fnmatch.filter(wanted, pattern):
                    raise DataError(f"the archive holds no {pattern}", archive)
            size = sum(entry.file_size for entry in wanted.values())  # no more than that is unpacked
            if size > _MOST_UNPACKED:
                raise DataError(f"its files have {size >> 20} MB, more than {_MOST_UNPACKED >> 20}; it was not used", archive)
            for name, entry in wanted.items():
                with contents.open(entry) as source, (folder / name).open("wb") as target:
                    shutil.copyfileobj(source, target)
    except (zipfile.BadZipFile, zlib.error, EOFError, RuntimeError) as error:  # the last: encrypted, or Deflate64
        raise DataError(f"the archive cannot be read: {error}", archive) from error


def _copy(dataset: Dataset, parts: Sequence[Path], folder: Path) -> None:
    for part, name in zip(parts, dataset.files):
        shutil.copyfile(part, folder / name)


def _split_mrpc(_: Dataset, parts: Sequence[Path], folder: Path) -> None:
    for name, text in split_mrpc(*parts).items():
        (folder / name).write_bytes(text.encode())


def split_mrpc(train: text_lines.Source, test: text_lines.Source, dev_ids: text_lines.Source) -> Mapping[str, str]:
    """Returns GLUE's train.tsv, dev.tsv and test.tsv by name, from msr_paraphrase_train.txt and _test.txt.

    GLUE takes some training pairs as dev, by `dev_ids`, a list of their two ids, and replaces the labels of the test pairs with
    numbers. Raises `DataError` if a dev pair is not in the training file.
    """
    lines = tables.open_table(dev_ids, form=names.TSV, header=False).read_rows(
        _MRPC_COLUMNS[:2], lambda line, ids: (tuple(ids), line)
    )
    line_of = dict(lines)
    header, pairs = _pairs(train)
    test_header, test_pairs = _pairs(test)
    missing = sorted(line_of.keys() - {tuple(pair[1:3]) for pair in pairs}, key=line_of.__getitem__)
    if missing:
        problem = f"{train} lacks {len(missing)} of these pairs, the first is {' and '.join(missing[0])}"
        raise DataError(problem, dev_ids, line_of[missing[0]])
    return {
        "train.tsv": _BOM + _text([header, *(pair for pair in pairs if tuple(pair[1:3]) not in line_of)]),
        "dev.tsv": _BOM + _text([header, *(pair for pair in pairs if tuple(pair[1:3]) in line_of)]),
        "test.tsv": _text([["index", *test_header[1:]], *([str(n), *pair[1:]] for n, pair in enumerate(test_pairs))]),
    }


def _pairs(path: text_lines.Source) -> tuple[Sequence[str], list[list[str]]]:
    table = tables.open_table(path, form=names.TSV)
    return table.names, list(table.read_rows(_MRPC_COLUMNS, lambda _, cells: cells))


def _text(rows: Iterable[Sequence[str]]) -> str:
    return "".join("\t".join(row) + "\n" for row in rows)


def _archive(address: str, folder: str, files: tuple[str, ...] = ("train.tsv", "dev.tsv", "test.tsv")) -> Dataset:
    return Dataset(folder, (Part(address, address.rsplit("/", 1)[1]),), files, _unzip)


_MNLI_FILES = tuple(f"{name}.tsv" for name in ("train", "dev_matched", "dev_mismatched", "test_matched", "test_mismatched"))

DATASETS: Mapping[str, tuple[Dataset, ...]] = {
    **{name: (_archive(f"glue/data/{name}.zip", name),) for name in ("CoLA", "SST-2", "STS-B", "RTE", "WNLI")},
    "QQP": (_archive("glue/data/QQP-clean.zip", "QQP"),),
    "QNLI": (_archive("glue/data/QNLIv2.zip", "QNLI"),),
    "MRPC": (
        Dataset(
            "MRPC",
            (
                Part(
                    "senteval/senteval_data/msr_paraphrase_train.txt",
                    "msr_paraphrase_train.txt",
                    "60a9b09084528f0673eedee2b69cb941920f0b8cd0eeccefc464a98768457f89",
                ),
                Part(
                    "senteval/senteval_data/msr_paraphrase_test.txt",
                    "msr_paraphrase_test.txt",
                    "a04e271090879aaba6423d65b94950c089298587d9c084bf9cd7439bd785f784",
                ),
                Part(
                    "glue/data/mrpc_dev_ids.tsv",
                    "dev_ids.tsv",
                    "971d7767d81b997fd9060ade0ec23c4fc31cbb226a55d1bd4a1bac474eb81dc7",
                ),
            ),
            ("train.tsv", "dev.tsv", "test.tsv"),
            _split_mrpc,
        ),
    ),
    "MNLI": (_archive("glue/data/MNLI.zip", "MNLI", _MNLI_FILES),),
    "AX": (Dataset("AX", (Part("glue/data/AX.tsv", "AX.tsv"),), ("diagnostic.tsv",), _copy),),
    "XNLI": (
        _archive("XNLI/XNLI-1.0.zip", "XNLI/XNLI-1.0", ("xnli.dev.tsv", "xnli.test.tsv")),
        _archive("XNLI/XNLI-MT-1.0.zip", "XNLI/XNLI-MT-1.0/multinli", ("multinli.train.*.tsv",)),
    ),
}


@takes(FetchSettings)
def fetch_data(
    task: str,
    *,
    data_dir: str | os.PathLike[str] | None = None,
    source_dir: str | os.PathLike[str] | None = None,
    sha256: str | Iterable[str] | None = None,
) -> list[Path]:
    """Downloads a task's published files to where `fine_tune` expects them; as `python -m bert_tf data fetch`.

    Args:
      task: its name; one language of XNLI fetches all.
      data_dir: receives a folder named after the task.
      source_dir: already holds the published files, nothing is downloaded; the flag is --from.
      sha256: of each published file, as a list or comma-separated.

    Returns:
      The folders that hold the files.

    Raises:
      BertError: a file is unavailable, has another checksum or cannot be written.
    """
    values = {"task": task, "data_dir": data_dir, "from": source_dir, "sha256": sha256}
    return fetch(read_settings(FetchSettings, values), environment=os.environ)


def fetch(settings: FetchSettings, *, environment: Mapping[str, str], say: Say = log.info) -> list[Path]:
    name = canonical_name(settings.task)
    if name == CUSTOM:
        raise FlagError(f"--task_name={CUSTOM} is your own data, there is nothing to fetch")
    datasets = DATASETS.get(folder_name(name))
    if datasets is None:
        raise FlagError(f"data fetch: {name} has no files to fetch; put yours into data/{name}, or name them with --data_dir")
    data_dir = Path(settings.data_dir or home.folder(environment) / "data")
    sums = [digest.strip().lower() for digest in settings.sha256 or ()]
    parts = [part for dataset in datasets for part in dataset.parts]
    if sums and len(sums) != len(parts):
        raise FlagError(f"--sha256 needs {len(parts)} sums for {name}, with commas: {', '.join(part.name for part in parts)}")
    digests = dict(zip(parts, sums))
    try:
        for dataset in datasets:
            with lock.claiming(atomic.make_folder(data_dir) / dataset.folder.replace("/", "-"), wait=True):
                _fetch(dataset, settings, data_dir, digests, say)
    finally:
        with contextlib.suppress(OSError):  # it may hold files for the next call
            (data_dir / _DOWNLOADS).rmdir()
    return [data_dir / dataset.folder for dataset in datasets]


def _fetch(dataset: Dataset, settings: FetchSettings, data_dir: Path, digests: Mapping[Part, str], say: Say) -> None:
    with atomic.readable_errors(data_dir / dataset.folder):
        target = atomic.linked(data_dir / dataset.folder)
    _recover(target)
    if all(any(target.glob(pattern)) for pattern in dataset.files):
        wanted = {part.url: digests[part] for part in dataset.parts if part in digests}
        if wanted and not wanted.items() <= _recorded(data_dir).items():
            raise DataError(
                "exists, but is not known to be from files with these sums; delete the folder to fetch it again", target
            )
        made = ", made from files with these sums" if wanted else ""
        say(f"{target}: already exists{made}; delete the folder to fetch it again")
        _delete_downloads(dataset, data_dir)  # of a call that was killed at its end
        return
    if settings.from_ is None:
        try:
            _download(dataset, data_dir, target, digests, say)
        finally:
            with contextlib.suppress(OSError):  # it may hold files for the next call
                (data_dir / _DOWNLOADS).rmdir()
    else:
        paths = [_local_file(part, Path(settings.from_), digests.get(part)) for part in dataset.parts]
        _make_folder(dataset, paths, target)
    say(f"{target}: {', '.join(sorted(path.name for path in target.iterdir()))}")


def _delete_downloads(dataset: Dataset, data_dir: Path) -> None:
    for part in dataset.parts:
        (data_dir / _DOWNLOADS / part.name).unlink(missing_ok=True)


def _download(dataset: Dataset, data_dir: Path, target: Path, digests: Mapping[Part, str], say: Say) -> None:
    paths = [data_dir / _DOWNLOADS / part.name for part in dataset.parts]
    before, received = _recorded(data_dir), {}
    for part, path in zip(dataset.parts, paths):
        _download_file(part.url, path)
        received[part.url] = _checked(part, path, digests.get(part), before.get(part.url), say)
    try:
        _make_folder(dataset, paths, target)
    except DataError:  # else the next call would fail in the same way
        _delete_downloads(dataset, data_dir)
        raise
    with lock.taking_turns(data_dir):  # other tasks are fetched meanwhile
        recorded = {**_recorded(data_dir), **received}
        atomic.write_text(data_dir / SUMS_NAME, "".join(f"{digest}  {url}\n" for url, digest in sorted(recorded.items())))
    _delete_downloads(dataset, data_dir)


class _Redirects(urllib.request.HTTPRedirectHandler):
    """Refuses redirects from https to http, which could be tampered with in transit."""

    def redirect_request(self, req: Any, fp: Any, code: int, msg: str, headers: Any, newurl: str) -> Any:
        if req.type == "https" and not newurl.lower().startswith("https:"):
            raise urllib.error.URLError(f"redirected from https to {newurl:.200}, which is not followed")
        return super().redirect_request(req, fp, code, msg, headers, newurl)


_opener = urllib.request.build_opener(_Redirects)


def _download_file(url: str, target: Path) -> None:
    """Downloads a file unless it exists; DataError for the server, OutputError for the disk."""
    if target.is_file():
        return
    atomic.delete_unfinished(target)
    with atomic.replacing(target) as part, part.open("wb") as file:
        file.writelines(_received(url))


def _received(url: str) -> Iterator[bytes]:
    """Yields the response, with a progress bar on a terminal.

    Failures become DataError here: `atomic.replacing` would attribute an OSError to the disk.
    """
    try:
        with _opener.open(url, timeout=_TIMEOUT_S) as response:
            name = url.rsplit("/", 1)[-1]
            received = 0
            with progress.bar(desc=name, total=response.length, unit="B", unit_scale=True) as bar:
                for block in iter(lambda: response.read(_BLOCK), b""):
                    received += len(block)
                    if received > _MOST_BYTES:
                        raise DataError(f"has more than {_MOST_BYTES >> 20} MB; it was not used", url)
                    yield block
                    bar.update(len(block))
            if response.length:  # bytes missing; `read` does not report them
                raise http.client.HTTPException(f"the connection broke off {response.length} bytes before the end")
    except urllib.error.HTTPError as error:
        raise DataError(f"cannot be fetched: {error.code} {error.reason}", url) from error
    except (OSError, http.client.HTTPException) as error:
        problem = str(getattr(error, "reason", error)) or type(error).__name__
        raise DataError(f"cannot be fetched: {problem}; try again, or name a folder that has it with --from", url) from error


def _recorded(data_dir: Path) -> dict[str, str]:
    path = data_dir / SUMS_NAME
    if not path.is_file():
        return {}
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except UnicodeDecodeError as error:
        why = encodings.instead_of_text(error.object) or f"not UTF-8; {encodings.remedy(error.object)}"
        raise DataError(why, path) from error
    return {url: digest for digest, _, url in (line.partition("  ") for line in lines)}


def _checked(part: Part, path: Path, required: str | None, before: str | None, say: Say) -> str:
    """Returns the sha256 of a downloaded file; deletes the file if it is not the expected one."""
    digest = files.digest(path)
    expected = required or part.sha256 or before
    if expected is None:
        say(f"{part.url}: {path.stat().st_size} bytes, sha256 {digest}; not known before, noted in {SUMS_NAME}")
    elif digest == expected:
        say(f"{part.url}: {path.stat().st_size} bytes, sha256 {digest}, as expected")
    else:
        path.unlink()
        origin = "as --sha256 says" if required else "as published" if part.sha256 else f"as fetched before, see {SUMS_NAME}"
        raise DataError(f"has sha256 {digest}, not {expected} {origin}; it was not used", part.url)
    return digest


def _local_file(part: Part, folder: Path, required: str | None) -> Path:
    """Finds a file the user already has; without --sha256 only warns if it differs from the published one."""
    names = dict.fromkeys((part.name, part.address.rsplit("/", 1)[1]))
    path = next((folder / name for name in names if (folder / name).is_file()), None)
    if path is None:
        raise DataError(f"holds no {' or '.join(names)}; it is published at {part.url}", folder)
    digest = files.digest(path)
    if required and digest != required:
        raise DataError(f"has sha256 {digest}, not {required} as --sha256 says; it was not used", path)
    if part.sha256 and digest != part.sha256:
        log.warning("%s: has sha256 %s, the published file %s: the result may differ too", path, digest, part.sha256)
    return path


def _make_folder(dataset: Dataset, parts: Sequence[Path], target: Path) -> None:
    """Creates the folder atomically; an existing folder keeps its files."""
    atomic.make_folder(target.parent)
    with atomic.readable_errors(target), tempfile.TemporaryDirectory(prefix=_scratch(target), dir=target.parent) as scratch:
        folder = Path(scratch) / "made"
        folder.mkdir()
        dataset.make(dataset, parts, folder)
        atomic.to_disk(folder)
        os.replace(folder, target / _COMPLETE if target.exists() else target)
        _move_up(target)


def _scratch(target: Path) -> str:
    return f".fetch-{target.name}-"


def _move_up(target: Path) -> None:
    if (target / _COMPLETE).is_dir():
        for path in (target / _COMPLETE).iterdir():
            if not (target / path.name).exists():
                os.replace(path, target / path.name)
        shutil.rmtree(target / _COMPLETE)


def _recover(target: Path) -> None:
    """Cleans up after a killed call: deletes its scratch folders, finishes its moves. The caller holds the lock."""
    for rest in target.parent.glob(f"{_scratch(target)}*"):
        shutil.rmtree(rest, ignore_errors=True)
    with atomic.readable_errors(target):
        _move_up(target)


def _print(call: Call) -> None:
    fetch(call.settings, environment=os.environ, say=print)


COMMAND = Command(
    "downloads a task's files to where training looks for them; XNLI has all languages",
    FetchSettings,
    _print,
    example="python -m bert_tf data fetch MRPC",
    log=warnings_only,
)
