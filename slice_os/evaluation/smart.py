"""Records of a SMART file (CISI, CACM, MED …): `.I 12`, then fields that begin with `.T`, `.W`."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from slice_os.errors import EvaluationError
from slice_os.evaluation.lines import numbered_lines

_RECORD = re.compile(r"\.I\s+(\S+)\s*$")
_FIELD = re.compile(r"\.([A-Z])\s*$")


@dataclass(slots=True)
class SmartRecord:
    """A document or a query: its id, the line it begins in, and its fields on one line each."""

    id: str
    line: int
    fields: dict[str, str] = field(default_factory=dict)


def read_smart(path: Path) -> Iterator[SmartRecord]:
    """Yield the records of a file, in its order.

    Raises:
        EvaluationError: The file cannot be read, or does not begin with a record.
    """
    record: SmartRecord | None = None
    name = ""
    for number, line in numbered_lines(path):
        if begun := _RECORD.match(line):
            if record is not None:
                yield record
            record, name = SmartRecord(begun[1], number), ""
        elif record is None:
            raise EvaluationError(
                f"{path}, line {number}, is {line.strip()[:40]!r}: a SMART file begins with "
                "'.I NUMBER'."
            )
        elif found := _FIELD.match(line):
            name = found[1]
        else:
            text = " ".join(line.split())
            record.fields[name] = f"{record.fields[name]} {text}" if name in record.fields else text
    if record is not None:
        yield record
