"""Checkpoint of a long scan: written atomically now and then, read back after a crash.

A checkpoint is the sum of the first jobs of a scan, and how many they were. Jobs are added up in a fixed
order, so going on from a checkpoint gives the bits that an undisturbed scan gives. It stays when the scan
is done, and goes when the result is on the disk (`calibrant.save(..., checkpoint=...)`).
"""

from __future__ import annotations

import hashlib
import json
import os
import tempfile
from collections.abc import Sequence
from io import BytesIO
from pathlib import Path

import numpy as np

from calibrant._files import (
    decoding,
    dump_bytes,
    load_bytes,
    place_of_file,
    read_bytes,
    write_whole,
)
from calibrant._optional import require
from calibrant.errors import InputError, invalid
from calibrant.io import files as data_files
from calibrant.io import text
from calibrant.io.request import Request
from calibrant.io.sums import Sums, Total, as_table, from_table

FORMAT = "calibrant.checkpoint"
VERSION = 3
WHAT = "a checkpoint of a scan"
_PROBES = np.linspace(0.01, 0.99, 33)


class Checkpoint:
    """File in which a scan of these files notes how far it is."""

    def __init__(
        self,
        path: str | os.PathLike[str],
        request: Request,
        files: Sequence[data_files.DataFile],
    ) -> None:
        if not isinstance(path, str | os.PathLike):
            raise invalid("checkpoint", "be the path of a file", path)
        self.path = Path(path)
        self.request = request
        self.fingerprint = _fingerprint(request, files)
        self.done = -1
        """Jobs of which the file holds the sums."""
        try:  # before anything is read
            place_of_file(self.path)
            with tempfile.TemporaryFile(dir=self.path.parent):
                pass
        except (InputError, OSError) as error:
            message = f"`checkpoint` must name a file that can be written; {self.path}: {error}."
            hint = "Name one in a folder that exists and is yours."
            raise InputError(message, argument="checkpoint", hint=hint) from error

    def save(self, done: int, total: Total) -> None:
        """Write the sums of the first `done` jobs; what was there before stays until this is whole."""
        pyarrow = require("pyarrow", caller="scan with a checkpoint")
        total.require_one_type()  # else Arrow has no column for them
        places, sums = total.merge()
        part = Sums(list(total.index), places, tuple(sums))
        note = json.dumps({"fingerprint": self.fingerprint, "done": done})
        table = as_table(part, self.request).replace_schema_metadata({"calibrant": note})
        content = BytesIO()
        with pyarrow.ipc.new_stream(content, table.schema) as writer:
            writer.write_table(table)
        write_whole(self.path, dump_bytes(FORMAT, VERSION, content.getvalue()))
        self.done = done

    def load(self, total: Total) -> int:
        """Add the sums of a stopped scan to `total`; the number of jobs that are done."""
        if not self.path.exists():
            return 0
        pyarrow = require("pyarrow", caller="scan with a checkpoint")
        try:
            payload = load_bytes(read_bytes(self.path, WHAT), FORMAT, VERSION, WHAT)
        except InputError as error:
            raise error.at(file=str(self.path)) from error
        with decoding(WHAT, self.path):
            table = pyarrow.ipc.open_stream(payload).read_all()
            note = json.loads(table.schema.metadata[b"calibrant"])
        if note["fingerprint"] != self.fingerprint:
            raise InputError(
                f"The checkpoint {self.path} is that of another scan: other files, columns, groups or grid, "
                "or changed files.",
                file=str(self.path),
                hint="Name another file, or remove it.",
            )
        with decoding(WHAT, self.path):
            total.add(from_table(table, self.request))
            self.done = int(note["done"])
        return self.done


def _fingerprint(request: Request, files: Sequence[data_files.DataFile]) -> str:
    described = [
        dict(request.selection),
        request.nodes,
        [request.scale.name, request.scale.locate(_PROBES).tolist()],  # two may have one name
        request.form,
        request.soft,
        [[file.path, *file.identity()] for file in files],
        # how the work is cut
        [data_files.JOB_ROWS, data_files.GROUPED_JOB_ROWS, text.BLOCK_BYTES],
    ]
    return hashlib.sha256(json.dumps(described, default=str).encode()).hexdigest()
