"""Logs of Inspect: `.eval` archives and their `.json` form."""

from __future__ import annotations

import struct
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from calibrant._files import json_of
from calibrant._optional import require
from calibrant.errors import CalibrantError, InputError, Option
from calibrant.io.answers.answers import Answer, Answers, Place, collected, question_of
from calibrant.io.answers.confidence import (
    FORMS,
    Values,
    from_log_probabilities,
)
from calibrant.io.answers.json_members import document_members
from calibrant.io.answers.refusals import is_refusal

__all__ = ["inspect_answers"]

WORDS = {
    "metadata": "confidence in the score's metadata",
    "stated": "confidence stated in the answer",
    "tokens": "product of the answer's token probabilities",
}
CONFIDENCE = ("confidence", "probability", "prob", "p")
HEADERS = ("header.json", "_journal/start.json")
"""What says whose log it is: once it is finished, and before."""
SAMPLES = "samples"
TOKEN_FORMS = ("sum", "mean", "token")
LARGEST_MEMBER = 1 << 30
END_MARK, END_RECORD = b"PK\x05\x06", 22
WIDE_LOCATOR_MARK, WIDE_LOCATOR, WIDE_RECORD, IN_WIDE_RECORD = b"PK\x06\x07", 20, 56, 0xFFFF
LOCAL_HEADER, ZSTANDARD = 30, 93
"""Of a ZIP archive: bytes before the name of a member, and the number of a way to pack."""
LOCAL_MARK, UTF_8 = b"PK\3\4", 0x800
Sample = dict[str, Any]


def inspect_answers(
    path: Path, values: Values, *, probability: str | None, correct: str | None
) -> Answers:
    """The answers of such a log; epochs of one sample are one question."""
    tokens = values.form if values.form in TOKEN_FORMS else "sum"
    if values.form not in ("probability", "percent", *TOKEN_FORMS):
        raise InputError(
            "of an Inspect log must be one of {known}",
            argument="form",
            seen=values.form,
            known=", ".join(("probability", "percent", *TOKEN_FORMS)),
            cure="Pass one of these.",
        )
    if probability is None and values.form in TOKEN_FORMS:
        probability = "tokens"
    if probability is not None and probability not in WORDS:
        raise InputError(
            "of an Inspect log must be one of {known}",
            argument="probability",
            seen=probability,
            known=", ".join(WORDS),
            cure="Pass one of these.",
        )

    def confidence(sample: Sample, kind: str) -> float | None:
        if kind == "stated":
            return values.stated(_completion(sample) or "")
        place = Place(str(path), sample=sample.get("id"))
        if kind == "tokens":
            return _token_probability(sample, place, tokens)
        return values.confidence(_confidence(_score(sample, judge)), place)

    judge, kinds = _first_look(path, correct)
    if probability is None:
        probability = next((kind for kind in WORDS if kind in kinds), next(iter(WORDS)))
    about = _header(path).get("eval")
    about = about if isinstance(about, dict) else {}
    groups = {name: str(about[name]) for name in ("model", "task") if name in about}

    def answer(sample: Sample) -> Answer:
        place = Place(str(path), sample=sample.get("id"))
        value = _score(sample, judge).get("value")
        return Answer(
            question=f"{groups.get('task', path.stem)}/{question_of(sample.get('id'), place, 'id')}",
            probability=confidence(sample, probability),
            correct=None if value == "N" else values.credit(value, place),
            abstained=value == "N" or (not sample.get("error") and is_refusal(_completion(sample))),
            groups=groups,
        )

    words = FORMS[tokens] if probability == "tokens" else WORDS[probability]
    answers = collected(
        (answer(sample) for sample in _samples(path)),
        probability=f"{words}; right by {judge!r}",
        where=str(path),
    )
    values.require_one_scale()
    return answers


def _first_look(path: Path, scorer: str | None) -> tuple[str, set[str]]:
    """The scorer, and the kinds of confidence that some sample has."""
    names: set[str] = set()
    kinds: set[str] = set()
    samples = 0
    for sample in _samples(path):
        samples += 1
        names.update(_scores(sample))
        if any(
            _confidence(score) is not None for score in map(_score_like, _scores(sample).values())
        ):
            kinds.add("metadata")
        if "stated" not in kinds and Values().stated(_completion(sample) or "") is not None:
            kinds.add("stated")
        if "tokens" not in kinds and _tokens(sample):
            kinds.add("tokens")
    if not samples:
        raise InputError(
            "{file} must hold samples; it has none",
            file=str(path),
            cure="Check that the evaluation has run to its end.",
        )
    return _scorer(path, sorted(names), scorer), kinds


def _score_like(score: Any) -> dict[str, Any]:
    return score if isinstance(score, dict) else {}


def _header(path: Path) -> Sample:
    """What says whose log it is."""
    if not zipfile.is_zipfile(path):
        content = document_members(path, SAMPLES, "an Inspect log")
        return {name: value for name, value in content if name != SAMPLES}
    with _archive(path) as (archive, members):
        first = next((members[name] for name in HEADERS if name in members), None)
        return _member(archive, first) if first else {}


def _samples(path: Path) -> Iterator[Sample]:
    """The samples, one at a time."""
    if not zipfile.is_zipfile(path):
        listed = False
        for name, value in document_members(path, SAMPLES, "an Inspect log"):
            listed = listed or name == SAMPLES
            if name == SAMPLES and not isinstance(value, dict):
                raise _not_samples(path)
            if name == SAMPLES:
                yield value
        if not listed:
            raise _not_samples(path)
        return
    with _archive(path) as (archive, members):
        for name in sorted(members):
            if name.startswith("samples/") and name.endswith(".json"):
                yield _member(archive, members[name])


def _not_samples(path: Path) -> InputError:
    return InputError(
        "{file} is not an Inspect log: it must hold a list of 'samples'",
        file=str(path),
        cure="Check the path, or name another format.",
    )


@contextmanager
def _archive(path: Path) -> Iterator[tuple[zipfile.ZipFile, dict[str, zipfile.ZipInfo]]]:
    """The archive and its members by name; whatever is wrong with it becomes an InputError."""
    try:
        with zipfile.ZipFile(path) as archive:
            members = {member.filename: member for member in archive.infolist()}
            if len(members) != _told_members(archive):
                raise ValueError("its table of contents lacks members")
            if min((member.header_offset for member in members.values()), default=0):
                raise ValueError("something stands before it, such as another archive")
            for member in members.values():
                _local_header(archive, member)
            yield archive, members
    except CalibrantError:
        raise
    except Exception as error:  # damaged bytes may raise anything
        raise InputError(
            "{file} is not an Inspect log that can be read ({error})",
            file=str(path),
            error=str(error),
            cure="Convert it with {command} and read that.",
            command="`inspect log convert --to json`",
        ) from error


def _member(archive: zipfile.ZipFile, member: zipfile.ZipInfo) -> Sample:
    if member.file_size > LARGEST_MEMBER:
        raise InputError(
            "a sample must unpack to at most {limit} bytes; {member} has {size}",
            limit=LARGEST_MEMBER,
            member=member.filename,
            size=member.file_size,
            cure="Check the file: it may have been made to fill the memory.",
        )
    content = json_of(_unpacked(archive, member))
    if not isinstance(content, dict):
        raise InputError(
            "{member} must be an object",
            member=member.filename,
            cure="The log is damaged: write it again.",
        )
    return content


def _unpacked(archive: zipfile.ZipFile, member: zipfile.ZipInfo) -> bytes:
    """The bytes of a member; Inspect packs with Zstandard, which Python's reader may not know."""
    if member.compress_type != ZSTANDARD:
        return archive.read(member)
    pyarrow = require("pyarrow", caller="reading an Inspect log")
    assert archive.filename is not None
    with open(archive.filename, "rb") as file:
        file.seek(_local_header(archive, member))
        packed = file.read(member.compress_size)
    unpacked: bytes = pyarrow.decompress(packed, member.file_size, codec="zstd", asbytes=True)
    if zlib.crc32(unpacked) != member.CRC:
        raise ValueError(f"the checksum of {member.filename} does not match")
    return unpacked


def _told_members(archive: zipfile.ZipFile) -> int:
    """How many members the end of the archive tells of.

    Python's reader does not ask: a damaged length in the table of contents would swallow those after it.
    """
    assert archive.fp is not None
    archive.fp.seek(-(END_RECORD + len(archive.comment)), 2)
    end = archive.fp.tell()
    mark, told = struct.unpack("<4s6xH10x", archive.fp.read(END_RECORD))
    if told == IN_WIDE_RECORD:
        archive.fp.seek(end - WIDE_LOCATOR)
        wide, place = struct.unpack("<4s4xQ4x", archive.fp.read(WIDE_LOCATOR))
        if wide == WIDE_LOCATOR_MARK:
            archive.fp.seek(place)
            return int(struct.unpack("<4s28xQ16x", archive.fp.read(WIDE_RECORD))[1])
    if mark != END_MARK:
        raise ValueError("its end is not where its comment says")
    return int(told)


def _local_header(archive: zipfile.ZipFile, member: zipfile.ZipInfo) -> int:
    """Where the bytes of a member begin, if its name is there the one that the contents tell.

    A name that was damaged would hide a sample: what is not called `samples/...` is not read.
    """
    assert archive.fp is not None
    archive.fp.seek(member.header_offset)
    mark, name, extra = struct.unpack("<4s22x2H", archive.fp.read(LOCAL_HEADER))
    told = member.orig_filename.encode("utf-8" if member.flag_bits & UTF_8 else "cp437")
    if mark != LOCAL_MARK or archive.fp.read(name) != told:
        raise ValueError(f"{member.filename} is not where its contents say")
    return int(member.header_offset + LOCAL_HEADER + name + extra)


def _scorer(path: Path, names: list[str], scorer: str | None) -> str:
    if not names:
        raise InputError(
            "{file} must hold scores; its samples have none",
            file=str(path),
            cure="Run {command} first.",
            command="`inspect score`",
        )
    shown = ", ".join(map(repr, names))
    if scorer is None and len(names) > 1:
        raise InputError(
            "{file} has {count} scorers: {scorers}",
            file=str(path),
            count=len(names),
            scorers=shown,
            cure="Choose one with {correct}.",
            correct=Option("correct", ...),
        )
    if scorer is not None and scorer not in names:
        raise InputError(
            "must be one of the log's scorers, {scorers}",
            argument="correct",
            seen=scorer,
            scorers=shown,
            cure="Pass one of these.",
        )
    return scorer or names[0]


def _scores(sample: Sample) -> dict[str, Any]:
    scores = sample.get("scores")
    return scores if isinstance(scores, dict) else {}


def _score(sample: Sample, scorer: str) -> dict[str, Any]:
    score = _scores(sample).get(scorer)
    return score if isinstance(score, dict) else {}


def _confidence(score: dict[str, Any]) -> Any:
    metadata = score.get("metadata")
    values = (metadata.get(name) for name in CONFIDENCE) if isinstance(metadata, dict) else ()
    return next((value for value in values if value is not None), None)


def _choice(sample: Sample) -> dict[str, Any]:
    output = sample.get("output")
    choices = output.get("choices") if isinstance(output, dict) else None
    first = choices[0] if isinstance(choices, list) and choices else None
    return first if isinstance(first, dict) else {}


def _completion(sample: Sample) -> str | None:
    message = _choice(sample).get("message")
    content = message.get("content") if isinstance(message, dict) else None
    if isinstance(content, list):
        parts = [part.get("text", "") for part in content if isinstance(part, dict)]
        return "\n".join(part for part in parts if isinstance(part, str))
    return content if isinstance(content, str) else None


def _tokens(sample: Sample) -> Any:
    logprobs = _choice(sample).get("logprobs")
    return logprobs.get("content") if isinstance(logprobs, dict) else None


def _token_probability(sample: Sample, place: Place, form: str) -> float | None:
    tokens = _tokens(sample)
    return from_log_probabilities(tokens, place, form) if tokens else None
