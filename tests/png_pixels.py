"""PNG files read without any library: their chunks and their pixels."""

from __future__ import annotations

import struct
import zlib

import numpy as np
from numpy.typing import NDArray


def png_chunks(content: bytes) -> dict[bytes, bytes]:
    """The chunks of a PNG by kind, those of one kind joined; every checksum must hold."""
    place, chunks = 8, dict[bytes, bytes]()
    while place < len(content):
        (size,) = struct.unpack(">I", content[place : place + 4])
        kind, body = content[place + 4 : place + 8], content[place + 8 : place + 8 + size]
        (check,) = struct.unpack(">I", content[place + 8 + size : place + 12 + size])
        assert check == zlib.crc32(kind + body)
        chunks[kind] = chunks.get(kind, b"") + body
        place += 12 + size
    return chunks


def unfiltered(content: bytes) -> NDArray[np.uint8]:
    """The pixels of a PNG with 8 bits per channel, shape (height, width, 3)."""
    chunks = png_chunks(content)
    width, height, _, kind = struct.unpack(">IIBB", chunks[b"IHDR"][:10])
    depth = {2: 3, 6: 4}[kind]
    rows = np.frombuffer(zlib.decompress(chunks[b"IDAT"]), np.uint8).reshape(height, 1 + width * depth)
    pixels = np.zeros((height, width, depth), np.uint8)
    above = np.zeros((width, depth), int)
    for y, row in enumerate(rows):
        line = row[1:].reshape(width, depth).astype(int)
        if row[0] == 1:
            line = np.cumsum(line, axis=0) % 256
        elif row[0] == 2:
            line = (line + above) % 256
        elif row[0] in (3, 4):
            left = corner = [0] * depth
            values, over = line.tolist(), above.tolist()
            for x, value in enumerate(values):
                for c in range(depth):
                    if row[0] == 3:
                        guess = (left[c] + over[x][c]) // 2
                    else:
                        middle = left[c] + over[x][c] - corner[c]
                        guess = min((left[c], over[x][c], corner[c]), key=lambda near, at=middle: abs(at - near))
                    value[c] = (value[c] + guess) % 256
                left, corner = value, over[x]
            line = np.array(values)
        pixels[y], above = line, line
    return pixels[..., :3]
