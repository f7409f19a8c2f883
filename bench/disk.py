"""What a folder's disk takes by itself: buffered writes, writes around the page cache, and both until they are on it."""

import mmap
import os
import time

_BLOCK = 1 << 20


def _write(path, flags, total):
    """(bytes/s as the writer sees it, bytes/s with what is needed until all of it is on the disk); None: refused."""
    block = mmap.mmap(-1, _BLOCK)  # page aligned, as O_DIRECT wants it
    block.write(os.urandom(_BLOCK))
    try:
        file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | flags, 0o600)
    except OSError:
        return None
    try:
        began = time.monotonic()
        for _ in range(total // _BLOCK):
            os.write(file, block)
        written = time.monotonic() - began
        os.fdatasync(file)
        synced = time.monotonic() - began
    except OSError:
        return None
    finally:
        os.close(file)
        os.unlink(path)
    return total / written, total / synced


def rates(folder, total):
    """{"buffered": (seen, on disk), "direct": the same or None}, in bytes/s, of so many bytes in blocks of 1 MiB."""
    path = os.path.join(folder, f"disk-{os.getpid()}")
    return {"buffered": _write(path, 0, total), "direct": _write(path, os.O_DIRECT, total)}
