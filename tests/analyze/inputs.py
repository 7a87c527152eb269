# SPDX-License-Identifier: Apache-2.0
"""What the scripts here share: input lists in the form of opstrobe/inputs.h, words for the filters, a filter at work."""

import struct
import subprocess
import sys

NONE, TENSOR, TENSOR_PLAIN, TENSOR_LIST, INT, BOOL, DOUBLE, COMPLEX, SCALAR_LIST, INT_LIST = range(10)


def skip(reason):
    """Ends the test as skipped."""
    print(f"skipped: {reason}")
    sys.exit(77)


def head(tag, n=0, dtype=6):
    return struct.pack("=BBH", tag, dtype, n)


def tensor(sizes, strides=None):
    strides = [1] * len(sizes) if strides is None else strides
    return head(TENSOR, len(sizes)) + struct.pack(f"={2 * len(sizes)}q", *sizes, *strides)


def plain_tensor(sizes):
    return head(TENSOR_PLAIN, len(sizes)) + struct.pack(f"={len(sizes)}q", *sizes)


def tensor_list(tensors):
    return head(TENSOR_LIST, len(tensors)) + b"".join(tensor(sizes) for sizes in tensors)


def scalar(value):
    if value is None:
        return head(NONE)
    if isinstance(value, bool):
        return head(BOOL, value)
    if isinstance(value, int):
        return head(INT) + struct.pack("=q", value)
    if isinstance(value, float):
        return head(DOUBLE) + struct.pack("=d", value)
    if isinstance(value, complex):
        return head(COMPLEX) + struct.pack("=dd", value.real, value.imag)
    if all(type(item) is int for item in value):
        return head(INT_LIST, len(value)) + struct.pack(f"={len(value)}q", *value)
    return head(SCALAR_LIST, len(value)) + b"".join(scalar(item) for item in value)


def input_list(items):
    return struct.pack("=I", len(items)) + b"".join(items)


def word(value):
    """A text, bytes, number, truth value or None as the filters read it."""
    if value is None:
        return "-"
    if isinstance(value, str):
        value = value.encode("utf-8", "surrogatepass")
    return "x" + value.hex() if isinstance(value, bytes) else str(int(value))


class Filter:
    """A program that answers what is written to it, one request after the other."""

    def __init__(self, program):
        self.process = subprocess.Popen([program], stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    def ask(self, words):
        self.process.stdin.write((" ".join(word(value) for value in words) + "\n").encode())
        self.process.stdin.flush()
        status, size = self.process.stdout.readline().split()
        return status.decode(), self.process.stdout.read(int(size))

    def close(self):
        self.process.stdin.close()
        assert self.process.wait() == 0
