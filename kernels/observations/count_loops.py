"""Common features of binary rows, counted one row against all columns, and k_x from the counts. Jitted functions only.

A dense line has a bit per column. Lines are added 64 columns at once, as on paper: plane p holds digit p of all sums.
Column t is bit t // n_bytes of byte t % n_bytes of a line, so that sums come out of the planes in the order of the
columns by a few shifts of whole words. The last line is 0: it fills up eights.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gramline.kernels._jit import jit, jit_apart, jit_inline
from gramline.kernels.observations.product_loops import ABSENT, NOWHERE, RowSlots, SlottedColumns
from gramline.kernels.packing import Floats, Ints, Offsets

Counts = NDArray[Any]  # unsigned integers, wide enough
Words = NDArray[np.uint64]
Bytes = NDArray[np.uint8]
Singles = NDArray[np.float32]

MOST_LINES = 56  # that six binary digits can count, in eights
PADDING = 64  # numbers that scales of columns have beyond the last: loops over groups of columns are left with no rest
ZERO, ONE, TWO, FOUR = np.uint64(0), np.uint64(1), np.uint64(2), np.uint64(4)
EVERY_SECOND = np.uint64(0x5555555555555555)  # bit of a word
EVERY_SECOND_PAIR = np.uint64(0x3333333333333333)
EVERY_SECOND_HALF = np.uint64(0x0F0F0F0F0F0F0F0F)


class CountRoom(NamedTuple):
    """Room to count the features that a row shares with all columns."""

    lines: Offsets  # shape (MOST_LINES,)
    planes: Words  # shape (6, n_words)
    sums: Words  # shape (8, n_words), a byte per column


class SinglePowers(NamedTuple):
    """k_x = (x . x' + offset)^degree row_scale col_scale in single precision, degree 1 to 4.

    Where there are units, x . x' is multiplied by those of row and column first.
    """

    offset: np.float32
    degree: int
    row_scales: Singles  # shape (n_rows,)
    col_scales: Singles  # shape (n_cols,), or longer
    row_units: Singles  # shape (n_rows,), or empty
    col_units: Singles  # shape (n_cols,) or longer, or empty


@jit
def place_columns(col_indptr: Offsets, col_slots: Ints, cols: SlottedColumns) -> None:
    """Fill the dense lines and the rare lists from binary columns."""
    dense, rare_cols = cols.dense, cols.rare_cols
    n_bytes = 8 * dense.shape[1]
    dense[:] = ZERO
    free = cols.rare_starts.copy()
    for t in range(len(col_indptr) - 1):
        bit, byte = divmod(t, n_bytes)
        word, one = byte // 8, ONE << np.uint64(8 * (byte % 8) + bit)
        for e in range(col_indptr[t], col_indptr[t + 1]):
            slot = col_slots[e]
            if slot == NOWHERE:
                continue
            if slot & 1:
                rare_cols[free[slot >> 1]] = t
                free[slot >> 1] += 1
            else:
                dense[slot >> 1, word] |= one


@jit
def add_bits(a: np.uint64, b: np.uint64, c: np.uint64) -> tuple[np.uint64, np.uint64]:
    """a + b + c of every bit: the digit that stays and the one that is carried."""
    differ = a ^ b
    return differ ^ c, (a & b) | (differ & c)


@jit_apart
def add_eight(lines: tuple[Words, ...], planes: tuple[Words, ...]) -> None:
    """planes += eight lines."""
    a, b, c, d, e, f, g, h = lines
    ones, twos, fours, eights, sixteens, others = planes
    for w in range(len(ones)):
        one, two_a = add_bits(ones[w], a[w], b[w])
        one, two_b = add_bits(one, c[w], d[w])
        one, two_c = add_bits(one, e[w], f[w])
        ones[w], two_d = add_bits(one, g[w], h[w])
        two, four_a = add_bits(twos[w], two_a, two_b)
        twos[w], four_b = add_bits(two, two_c, two_d)
        fours[w], eight = add_bits(fours[w], four_a, four_b)
        sixteen = eights[w] & eight
        other = sixteens[w] & sixteen
        eights[w] ^= eight
        sixteens[w] ^= sixteen
        others[w] ^= other


@jit
def interleave(a: np.uint64, b: np.uint64, shift: np.uint64, mask: np.uint64) -> tuple[np.uint64, np.uint64]:
    """Fields of `shift` bits of a, each followed by that of b: those under the mask, and those beside it."""
    return (a & mask) | ((b & mask) << shift), ((a >> shift) & mask) | (b & ~mask)


@jit_apart
def spread(planes: tuple[Words, ...], sums: tuple[Words, ...]) -> None:
    """sums[b] = a byte for bit b of every byte of the planes: the number whose digits are in the six planes."""
    ones, twos, fours, eights, sixteens, others = planes
    s_0, s_1, s_2, s_3, s_4, s_5, s_6, s_7 = sums
    for w in range(len(ones)):
        low_even, low_odd = interleave(ones[w], twos[w], ONE, EVERY_SECOND)
        mid_even, mid_odd = interleave(fours[w], eights[w], ONE, EVERY_SECOND)
        top_even, top_odd = interleave(sixteens[w], others[w], ONE, EVERY_SECOND)
        low_04, low_26 = interleave(low_even, mid_even, TWO, EVERY_SECOND_PAIR)
        low_15, low_37 = interleave(low_odd, mid_odd, TWO, EVERY_SECOND_PAIR)
        top_04, top_26 = interleave(top_even, ZERO, TWO, EVERY_SECOND_PAIR)
        top_15, top_37 = interleave(top_odd, ZERO, TWO, EVERY_SECOND_PAIR)
        s_0[w], s_4[w] = interleave(low_04, top_04, FOUR, EVERY_SECOND_HALF)
        s_1[w], s_5[w] = interleave(low_15, top_15, FOUR, EVERY_SECOND_HALF)
        s_2[w], s_6[w] = interleave(low_26, top_26, FOUR, EVERY_SECOND_HALF)
        s_3[w], s_7[w] = interleave(low_37, top_37, FOUR, EVERY_SECOND_HALF)


@jit
def room_for_counts(cols: SlottedColumns) -> CountRoom:
    """Room for one row at a time against these columns."""
    n_words = cols.dense.shape[1]
    sums = np.empty((8, n_words), np.uint64)
    return CountRoom(np.empty(MOST_LINES, np.int64), np.empty((6, n_words), np.uint64), sums)


@jit_inline
def sum_lines(dense: Words, n_lines: int, room: CountRoom) -> Bytes:
    """The sum of the dense lines room.lines[:n_lines], at most MOST_LINES; a view of room.sums."""
    lines, p, s = room.lines, room.planes, room.sums
    while n_lines % 8 != 0:
        lines[n_lines] = len(dense) - 1
        n_lines += 1
    p[:] = ZERO
    planes = (p[0], p[1], p[2], p[3], p[4], p[5])
    for k in range(0, n_lines, 8):
        first = (dense[lines[k]], dense[lines[k + 1]], dense[lines[k + 2]], dense[lines[k + 3]])
        others = (dense[lines[k + 4]], dense[lines[k + 5]], dense[lines[k + 6]], dense[lines[k + 7]])
        add_eight((*first, *others), planes)
    spread(planes, (s[0], s[1], s[2], s[3], s[4], s[5], s[6], s[7]))
    return s.reshape(s.size).view(np.uint8)


@jit_apart
def add_sums(sums: Bytes, n_added: int, counts: Counts) -> None:
    """counts += sums, or = sums where nothing was added before."""
    if n_added == 0:
        for t in range(len(counts)):
            counts[t] = sums[t]
    else:
        for t in range(len(counts)):
            counts[t] += sums[t]


@jit_inline
def add_lists(lists: Offsets, n_lists: int, rare_starts: Offsets, rare_cols: Ints, counts: Counts) -> None:
    """counts += 1 in the columns of the rare lists lists[:n_lists]."""
    for number in range(n_lists):
        for k in range(rare_starts[lists[number]], rare_starts[lists[number] + 1]):
            counts[rare_cols[k]] += 1


@jit
def count_common(first: int, rows: RowSlots, cols: SlottedColumns, room: CountRoom, counts: Counts) -> None:
    """counts[i, t] = number of features that row first + i and column t share; at least an entry per bit of a line.

    Lines and lists are gathered without branches: which of them a feature has cannot be foretold. Arrays are taken out
    of their records once, for many rows: each time costs as much as to add a line.
    """
    indptr, slots, gathered = rows.indptr, rows.slots, room.lines
    dense, rare_starts, rare_cols = cols.dense, cols.rare_starts, cols.rare_cols
    n_bits = 64 * dense.shape[1]
    for i in range(len(counts)):
        line, begin, end = counts[i, :n_bits], indptr[first + i], indptr[first + i + 1]
        n_lines = n_lists = n_added = 0
        for e in range(begin, end):
            gathered[n_lines] = slots[e] >> 1
            n_lines += 1 - (slots[e] & 1)
            if n_lines == MOST_LINES:
                add_sums(sum_lines(dense, n_lines, room), n_added, line)
                n_added, n_lines = n_added + n_lines, 0
        add_sums(sum_lines(dense, n_lines, room), n_added, line)
        for e in range(begin, end):
            gathered[n_lists] = slots[e] >> 1
            n_lists += (slots[e] & 1) & (slots[e] != ABSENT)
            if n_lists == MOST_LINES:
                add_lists(gathered, n_lists, rare_starts, rare_cols, line)
                n_lists = 0
        add_lists(gathered, n_lists, rare_starts, rare_cols, line)


@jit
def fill_from_counts(
    first: int, rows: RowSlots, cols: SlottedColumns, table: Floats, counts: Counts, out: Floats
) -> None:
    """out[i, t] = table[dot(first + i, t)]; `counts` is room for some rows."""
    room = room_for_counts(cols)
    for low in range(0, len(out), len(counts)):
        high = min(low + len(counts), len(out))
        count_common(first + low, rows, cols, room, counts[: high - low])
        for i in range(low, high):
            line, found = out[i], counts[i - low]
            for t in range(len(line)):
                line[t] = table[found[t]]


@jit
def fill_from_distances(
    first: int, rows: RowSlots, cols: SlottedColumns, col_sizes: Offsets, table: Floats, counts: Counts, out: Floats
) -> None:
    """out[i, t] = table[|x - x'|^2]; |x - x'|^2 = size + size' - 2 dot."""
    room, indptr = room_for_counts(cols), rows.indptr
    for low in range(0, len(out), len(counts)):
        high = min(low + len(counts), len(out))
        count_common(first + low, rows, cols, room, counts[: high - low])
        for i in range(low, high):
            line, found = out[i], counts[i - low]
            size = indptr[first + i + 1] - indptr[first + i]
            for t in range(len(line)):
                line[t] = table[size + col_sizes[t] - 2 * np.int64(found[t])]


@jit
def raised(base: np.float32, degree: int) -> np.float32:
    """base^degree, degree 1 to 4."""
    power = base
    if degree > 1:
        power *= base
    if degree > 2:
        power *= base
    if degree > 3:
        power *= base
    return power


@jit_apart
def raise_counts(
    counts: Counts, offset: np.float32, degree: int, scale: np.float32, scales: Singles, line: Singles
) -> None:
    """line = (counts + offset)^degree scale scales, all in float32."""
    for t in range(len(line)):
        line[t] = raised(np.float32(counts[t]) + offset, degree) * (scale * scales[t])


@jit_apart
def raise_cosines(
    counts: Counts, unit: np.float32, units: Singles, offset: np.float32, degree: int, line: Singles
) -> None:
    """line = (counts unit units + offset)^degree."""
    for t in range(len(line)):
        line[t] = raised(np.float32(counts[t]) * (unit * units[t]) + offset, degree)


@jit_apart
def scale_line(scale: np.float32, scales: Singles, line: Singles) -> None:
    """line *= scale scales."""
    for t in range(len(line)):
        line[t] *= scale * scales[t]


@jit
def raise_rows(first: int, columns: tuple[int, int], counts: Counts, powers: SinglePowers, out: Singles) -> None:
    """out[i, t] = k_x of row first + i and column t of columns[0]..columns[1]-1 in float32, for all rows of counts.

    Rows of counts are of all columns; rows of out may be longer.
    """
    begin, end = columns
    offset, degree, row_scales, row_units = powers.offset, powers.degree, powers.row_scales, powers.row_units
    scales, units = powers.col_scales[begin:], powers.col_units[begin:]
    for i in range(len(counts)):
        found, line, scale = counts[i, begin:end], out[i, : end - begin], row_scales[first + i]
        if len(row_units) == 0:
            raise_counts(found, offset, degree, scale, scales, line)
        else:
            raise_cosines(found, row_units[first + i], units, offset, degree, line)
            scale_line(scale, scales, line)


@jit
def fill_powers(
    first: int, rows: RowSlots, cols: SlottedColumns, n_cols: int, powers: SinglePowers, counts: Counts, out: Singles
) -> None:
    """out[i, t] = k_x of row first + i and column t of `n_cols` in float32; `counts` is room for some rows."""
    room = room_for_counts(cols)
    for low in range(0, len(out), len(counts)):
        high = min(low + len(counts), len(out))
        count_common(first + low, rows, cols, room, counts[: high - low])
        raise_rows(first + low, (0, n_cols), counts[: high - low], powers, out[low:high])
