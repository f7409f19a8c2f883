"""GetBlockRange answers as an indexer sends them, with a count of the bytes that no compressor can shorten.

The fields are those of proto/compact_formats.proto. Hashes, ids, nullifiers, commitments, keys and ciphertexts are
random, as on the chain; heights, times, tags and lengths are not, and neither is prevHash, which repeats the hash of the
block before it.
"""

import random
import struct

_ACTION = 32 + 32 + 32 + 52  # nullifier, cmx, ephemeralKey, ciphertext
_OUTPUT = 32 + 32 + 52  # cmu, ephemeralKey, ciphertext


def varint(number):
    out = bytearray()
    while number > 0x7F:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    out.append(number)
    return bytes(out)


def field(number, body):
    return varint(number << 3 | 2) + varint(len(body)) + body


def _action(noise):
    return field(1, noise[:32]) + field(2, noise[32:64]) + field(3, noise[64:96]) + field(4, noise[96:148])


def _output(noise):
    return field(1, noise[:32]) + field(2, noise[32:64]) + field(3, noise[64:116])


class Blocks:
    """An endless chain. `random_bytes` counts what was random in the blocks so far."""

    def __init__(self, seed, first_height=1_687_104):
        self._numbers = random.Random(seed)
        self.height = first_height
        self.random_bytes = 0
        self._previous = self._numbers.randbytes(32)
        self._time = 1_654_000_000

    def _noise(self, length):
        self.random_bytes += length
        return self._numbers.randbytes(length)

    def _transaction(self, index):
        pick = self._numbers.random()
        body = bytearray()
        body += varint(1 << 3) + varint(index) + field(2, self._noise(32))
        # Most payments are two actions; now and then a wallet sends to many.
        count = self._numbers.randint(20, 60) if pick < 0.02 else 2
        if pick < 0.7:
            for _ in range(count):
                body += field(6, _action(self._noise(_ACTION)))
        else:
            body += field(4, field(1, self._noise(32)))
            for _ in range(count):
                body += field(5, _output(self._noise(_OUTPUT)))
        return bytes(body)

    def next(self):
        """One block as a gRPC message with its five bytes in front."""
        block_hash = self._noise(32)
        self._time += self._numbers.randint(20, 130)
        body = bytearray()
        body += varint(2 << 3) + varint(self.height) + field(3, block_hash) + field(4, self._previous)
        body += varint(5 << 3) + varint(self._time)
        for index in range(1 + int(self._numbers.expovariate(1 / 4))):
            body += field(7, self._transaction(index))
        body += field(8, varint(1 << 3) + varint(73_000_000 + self.height) + varint(2 << 3) + varint(49_000_000 + 2 * self.height))
        self._previous = block_hash
        self.height += 1
        return struct.pack(">BI", 0, len(body)) + bytes(body)


def answer(seed, length):
    """(at least `length` bytes of blocks, how many of them are random)."""
    blocks = Blocks(seed)
    parts, size = [], 0
    while size < length:
        parts.append(blocks.next())
        size += len(parts[-1])
    return b"".join(parts), blocks.random_bytes
