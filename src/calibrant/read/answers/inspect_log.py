"""Logs of Inspect: `.eval` archives and their `.json` form."""

from __future__ import annotations

import json
import math
import os
import struct
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal

from calibrant._optional import require
from calibrant.errors import InputError
from calibrant.read.answers.answers import Answer, Answers, collected, question_of
from calibrant.read.answers.confidence import (
    as_credit,
    as_probability,
    is_refusal,
    reader,
    stated_confidence,
)

__all__ = ["inspect_answers"]

WORDS = {
    "metadata": "confidence in the score's metadata",
    "stated": "confidence stated in the answer",
    "tokens": "product of the answer's token probabilities",
}
CONFIDENCE = ("confidence", "probability", "prob", "p")
HEADERS = ("header.json", "_journal/start.json")
"""What says whose log it is: once it is finished, and before."""
LARGEST_MEMBER = 1 << 30
LOCAL_HEADER, ZSTANDARD = 30, 93
"""Of a ZIP archive: bytes before the name of a member, and the number of a way to pack."""
Sample = dict[str, Any]


def inspect_answers(
    path: Path,
    *,
    probability: str | None,
    correct: str | None,
    on_invalid: Literal["raise", "drop"],
) -> Answers:
    """The answers of such a log; epochs of one sample are one question."""
    if probability is not None and probability not in WORDS:
        raise InputError(
            f"`probability` of an Inspect log must be one of {', '.join(WORDS)}; got {probability!r}."
        )
    header, samples = _archive(path) if zipfile.is_zipfile(path) else _document(path)
    if not samples:
        raise InputError(f"{path} must hold samples; it has none.")
    judge = _scorer(path, samples, correct)
    read_confidence, read_credit = (
        reader(read, on_invalid) for read in (as_probability, as_credit)
    )

    def found(sample: Sample, kind: str) -> float | None:
        if kind == "stated":
            return stated_confidence(_completion(sample) or "")
        if kind == "tokens":
            return _token_probability(sample)
        where = f"{path}, sample {sample.get('id')!r}"
        return read_confidence(_confidence(_score(sample, judge)), where)

    kinds = [probability] if probability else list(WORDS)
    kind = next((k for k in kinds if any(found(s, k) is not None for s in samples)), kinds[0])
    about = header.get("eval")
    about = about if isinstance(about, dict) else {}
    groups = {name: str(about[name]) for name in ("model", "task") if name in about}

    def answer(sample: Sample) -> Answer:
        where = f"{path}, sample {sample.get('id')!r}"
        score = _score(sample, judge)
        value = score.get("value")
        return Answer(
            question=f"{groups.get('task', path.stem)}/{question_of(sample.get('id'), where, 'id')}",
            probability=found(sample, kind),
            correct=None if value == "N" else read_credit(value, where),
            abstained=value == "N" or (not sample.get("error") and is_refusal(_completion(sample))),
            groups=groups,
        )

    return collected(
        [answer(sample) for sample in samples],
        probability=f"{WORDS[kind]}; right by {judge!r}",
        where=str(path),
    )


def _document(path: Path) -> tuple[Sample, list[Sample]]:
    try:
        content = json.loads(path.read_bytes())
    except (ValueError, RecursionError) as error:
        raise InputError(f"{path} is not an Inspect log: it is not JSON ({error}).") from error
    samples = content.get("samples") if isinstance(content, dict) else None
    if not isinstance(samples, list) or not all(isinstance(sample, dict) for sample in samples):
        raise InputError(f"{path} is not an Inspect log: it must hold a list of 'samples'.")
    return content, samples


def _archive(path: Path) -> tuple[Sample, list[Sample]]:
    try:
        with zipfile.ZipFile(path) as archive:
            members = {member.filename: member for member in archive.infolist()}
            first = next((members[name] for name in HEADERS if name in members), None)
            header = _member(archive, first) if first else {}
            return header, list(_samples(archive, members))
    except (zipfile.BadZipFile, NotImplementedError, ValueError, EOFError, OSError) as error:
        if isinstance(error, InputError):
            raise
        raise InputError(
            f"{path} is not an Inspect log that can be read ({error}). Convert it with `inspect log "
            "convert --to json` and read that."
        ) from error


def _samples(archive: zipfile.ZipFile, members: dict[str, zipfile.ZipInfo]) -> Iterator[Sample]:
    for name in sorted(members):
        if name.startswith("samples/") and name.endswith(".json"):
            yield _member(archive, members[name])


def _member(archive: zipfile.ZipFile, member: zipfile.ZipInfo) -> Sample:
    if member.file_size > LARGEST_MEMBER:
        raise InputError(
            f"{archive.filename}: {member.filename} unpacks to {member.file_size} bytes, over the limit "
            f"of {LARGEST_MEMBER}."
        )
    content = json.loads(_unpacked(archive, member))
    if not isinstance(content, dict):
        raise InputError(f"{archive.filename}: {member.filename} must be an object.")
    return content


def _unpacked(archive: zipfile.ZipFile, member: zipfile.ZipInfo) -> bytes:
    """The bytes of a member; Inspect packs with Zstandard, which Python's reader may not know."""
    if member.compress_type != ZSTANDARD:
        return archive.read(member)
    pyarrow = require("pyarrow", caller="reading an Inspect log")
    assert archive.filename is not None
    with open(archive.filename, "rb") as file:
        file.seek(member.header_offset)
        name, extra = struct.unpack("<26x2H", file.read(LOCAL_HEADER))
        file.seek(name + extra, os.SEEK_CUR)
        packed = file.read(member.compress_size)
    unpacked: bytes = pyarrow.decompress(packed, member.file_size, codec="zstd", asbytes=True)
    return unpacked


def _scorer(path: Path, samples: list[Sample], scorer: str | None) -> str:
    names = sorted({name for sample in samples for name in _scores(sample)})
    if not names:
        raise InputError(
            f"{path} must hold scores; its samples have none. Run `inspect score` first."
        )
    if scorer is None and len(names) > 1:
        raise InputError(
            f"{path} has {len(names)} scorers: {', '.join(map(repr, names))}. Choose one with `correct=`."
        )
    if scorer is not None and scorer not in names:
        raise InputError(f"{path} has the scorers {', '.join(map(repr, names))}; got {scorer!r}.")
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


def _token_probability(sample: Sample) -> float | None:
    logprobs = _choice(sample).get("logprobs")
    tokens = logprobs.get("content") if isinstance(logprobs, dict) else None
    if not isinstance(tokens, list) or not tokens:
        return None
    total = 0.0
    for token in tokens:
        logprob = token.get("logprob") if isinstance(token, dict) else None
        if not isinstance(logprob, int | float) or not logprob <= 0:
            return None
        total += logprob
    return math.exp(total)
