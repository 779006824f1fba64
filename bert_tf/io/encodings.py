"""Says what a file holds instead of UTF-8 text: another format by its first bytes, or another encoding, guessed.

Each encoding has a sign that its text shows and that of others hardly does: the common characters of double-byte
encodings are in known rows of their tables, and Latin letters stand alone between ASCII letters.
"""

from __future__ import annotations

import importlib.util
import re
from collections.abc import Callable, Mapping
from typing import NamedTuple

GZIP, PARQUET = b"\x1f\x8b", b"PAR1"  # first bytes
_BEGINNINGS: Mapping[bytes, str] = {
    b"\xff\xfe\0\0": "the file is UTF-32; iconv -f UTF-32 -t UTF-8 converts it",
    b"\0\0\xfe\xff": "the file is UTF-32; iconv -f UTF-32 -t UTF-8 converts it",
    b"\xff\xfe": "the file is UTF-16; iconv -f UTF-16 -t UTF-8 converts it",
    b"\xfe\xff": "the file is UTF-16; iconv -f UTF-16 -t UTF-8 converts it",
    GZIP: "the file is compressed; add .gz to its name",
    b"BZh": "the file is compressed by bzip2; bunzip2 unpacks it",
    b"\xfd7zXZ": "the file is compressed by xz; unxz unpacks it",
    b"\x28\xb5\x2f\xfd": "the file is compressed by zstd; unzstd unpacks it",
    b"PK\x03\x04": "the file is a ZIP archive or an Excel workbook; unpack it, or save it as CSV in UTF-8",
    b"\xd0\xcf\x11\xe0": "the file is an Excel workbook; save it as CSV in UTF-8",
    PARQUET: "the file is Parquet: a table of it is read by the name .parquet; other texts must be exported",
    b"%PDF": "the file is a PDF document; save its text as UTF-8",
    b"\x93NUMPY": "the file is an array of NumPy; write a table of texts",
    b"SQLite format 3": "the file is an SQLite database; export the table as CSV",
    b"version https://git-lfs.github.com/spec/": "the file is a pointer of Git LFS to the data; git lfs pull fetches it",
}
LONGEST = max(map(len, _BEGINNINGS))  # bytes by which a format is known

_FEW = 4  # characters beyond ASCII, of which no encoding can be told
_SURE = 0.8  # least share of the characters that show the sign of an encoding
_HIGH = re.compile(rb"[\x80-\xff]+")


def instead_of_text(begin: bytes) -> str | None:
    """Returns what a file is, and the remedy, by its first bytes; None if it may be text."""
    kind = next((description for start, description in _BEGINNINGS.items() if begin.startswith(start)), None)
    return kind or _without_mark(begin.split(b"\n", 1)[0])


def _without_mark(line: bytes) -> str | None:
    """UTF-16 and UTF-32 without a byte order mark are valid UTF-8 if the text is ASCII: most bytes are NUL."""
    if line.count(0) * 3 < len(line) or len(line) < 2:
        return None
    bits = 32 if line.count(0) * 3 > len(line) * 2 else 16
    name = f"UTF-{bits}{'BE' if line[0] == 0 else 'LE'}"
    return f"the file is {name}; iconv -f {name} -t UTF-8 converts it"


def remedy(data: bytes) -> str:
    """Returns what to do with lines of which at least one is not UTF-8."""
    lines = data.split(b"\n")
    damaged = [line for line in lines if not _decodes(line, "utf-8")]
    if any(_HIGH.search(line) for line in lines if line not in damaged):
        return "other lines are UTF-8, so this one is damaged or from another file: write it again"
    name = guess(b"\n".join(damaged))
    if name is None:
        return "convert the file from its encoding, as with iconv -f ENCODING -t UTF-8"
    return f"it looks like {name}: iconv -f {name} -t UTF-8 converts the file; look at the result"


def guess(data: bytes) -> str | None:
    """Returns the probable encoding of text that is not UTF-8, by the name that iconv knows; None if there is no sign."""
    shares = {encoding.name: encoding.share(data) for encoding in _ENCODINGS if _decodes(data, encoding.codec)}
    best = max(shares, key=lambda name: shares[name], default="")
    if best and shares[best] >= _SURE:
        return best
    few = len(b"".join(_HIGH.findall(data))) < _FEW
    if few or importlib.util.find_spec("charset_normalizer") is None:  # comes with TensorFlow's requests
        return None
    import charset_normalizer

    detected = charset_normalizer.from_bytes(data).best()
    return (
        None
        if detected is None or not detected.coherence or detected.encoding == "utf_8"
        else detected.encoding.replace("_", "-").upper()
    )


def _decodes(data: bytes, codec: str) -> bool:
    try:
        data.decode(codec)
    except UnicodeDecodeError:
        return False
    return True


class _Encoding(NamedTuple):
    name: str  # of iconv
    codec: str  # of Python
    share: Callable[[bytes], float]  # of the characters beyond ASCII that show the sign


def _pairs(leads: bytes, trails: bytes, common: bytes, needed: bytes = b"") -> Callable[[bytes], float]:
    """Sign of a double-byte encoding: common characters, by their first byte; `needed` must be a fifth of them.

    The arguments are parts of a regular expression's class of bytes.
    """
    pair = re.compile(rb"([" + leads + rb"])[" + trails + rb"]|[\x80-\xff]")
    is_common, is_needed = re.compile(rb"[" + common + rb"]"), re.compile(rb"[" + (needed or common) + rb"]")

    def share(data: bytes) -> float:
        firsts = [match[1] or b"" for match in pair.finditer(data)]
        if 5 * sum(bool(is_needed.fullmatch(first)) for first in firsts) < len(firsts):
            return 0.0
        return sum(bool(is_common.fullmatch(first)) for first in firsts) / max(len(firsts), 1)

    return share


def _runs(common: bytes) -> Callable[[bytes], float]:
    """Sign of an alphabet of its own: words of high bytes, most of them the small letters."""
    small = re.compile(rb"[" + common + rb"]")

    def share(data: bytes) -> float:
        high = b"".join(run for run in _HIGH.findall(data) if len(run) > 1)
        return len(small.findall(high)) / max(len(b"".join(_HIGH.findall(data))), 1)

    return share


# High bytes of Windows-1252 where Western text has them: quotes and dashes at words, letters beside ASCII letters.
_WESTERN = re.compile(
    rb"(?<=[A-Za-z])[\x92\xb4](?=[A-Za-z\xc0-\xff\s.,;:!?)]|$)|(?<![A-Za-z])[\x91\x93\xab\xa1\xbf](?=[\w\s\x80-\xff])"
    rb"|(?<=[\w.,;:!?\x80-\xff])[\x92\x94\xbb\x85](?![A-Za-z])|[\s\d][\x80\x96\x97\xa3\xa7\xa9\xb0\xb1\xb7](?=[\s\d])"
    rb"|(?<=[\d\s])[\x80\xa3\xb0](?=[\d\s.,CF])|(?<=\d)[\xb0\x96\xa0]|(?<=[A-Za-z])[\xc0-\xfe](?![\x80-\xff]{2})"
    rb"|(?<![\x80-\x91\x93-\xff])[\xc0-\xfe](?=[A-Za-z])|(?<=[a-z][\xdf-\xfe])[\xdf-\xfe](?=[a-z\s])|\xe0(?=\s)"
)


def _western(data: bytes) -> float:
    return len(_WESTERN.findall(data)) / max(len(b"".join(_HIGH.findall(data))), 1)


_ENCODINGS = (
    _Encoding("WINDOWS-1252", "cp1252", _western),
    _Encoding("SHIFT-JIS", "cp932", _pairs(rb"\x81-\x9f\xe0-\xfc", rb"\x40-\x7e\x80-\xfc", rb"\x81-\x83\x88-\x97")),
    _Encoding("EUC-JP", "euc_jp", _pairs(rb"\xa1-\xfe", rb"\xa1-\xfe", rb"\xa1\xa4\xa5\xb0-\xcf", rb"\xa4\xa5")),
    _Encoding("EUC-KR", "euc_kr", _pairs(rb"\xa1-\xfe", rb"\xa1-\xfe", rb"\xa1\xb0-\xc8")),
    _Encoding("GB18030", "gb18030", _pairs(rb"\x81-\xfe", rb"\x40-\x7e\x80-\xfe", rb"\xa1\xa3\xb0-\xd7", rb"\xb0-\xd7")),
    _Encoding("BIG5", "big5", _pairs(rb"\xa1-\xf9", rb"\x40-\x7e\xa1-\xfe", rb"\xa1\xa4-\xc6", rb"\xa4-\xc6")),
    _Encoding("WINDOWS-1251", "cp1251", _runs(rb"\xe0-\xff")),
    _Encoding("KOI8-R", "koi8_r", _runs(rb"\xc0-\xdf")),
)
