"""Parts of a model file, and files with changed parts."""

from __future__ import annotations

import json
import struct


def read_parts(path):
    """Returns the header of a model file and the bytes of its arrays."""
    data = path.read_bytes()
    (length,) = struct.unpack("<Q", data[:8])
    return json.loads(data[8 : 8 + length]), data[8 + length :]


def write_parts(path, header, data):
    text = json.dumps(header).encode()
    path.write_bytes(struct.pack("<Q", len(text)) + text + data)


def description(path):
    """Returns the description of a model, which is JSON in the header."""
    return json.loads(read_parts(path)[0]["__metadata__"]["extra"])


def describe(path, text):
    """Replaces the description of a model file by another text."""
    header, data = read_parts(path)
    header["__metadata__"]["extra"] = text
    write_parts(path, header, data)


def change_description(path, changes):
    """Changes values of the description by their paths ("certificate_/seconds"); "remove" deletes one."""
    extra = description(path)
    for way, value in changes.items():
        *outer, last = way.split("/")
        inner = extra
        for key in outer:
            inner = inner[key]
        if value == "remove":
            del inner[last]
        else:
            inner[last] = value
    describe(path, json.dumps(extra))
