"""AES-256 a byte at a time, as FIPS 197 describes it, and its counter mode (NIST SP 800-38A)."""

ROUNDS = 14
KEY_WORDS = 8


def times_x(a: int) -> int:
    """Multiply by x in the field of 256 elements modulo x^8 + x^4 + x^3 + x + 1."""
    return (a << 1) ^ (0x11B if a & 0x80 else 0)


def times(a: int, b: int) -> int:
    product = 0
    while b:
        if b & 1:
            product ^= a
        a = times_x(a)
        b >>= 1
    return product


def substitute(a: int) -> int:
    """Return the inverse of a byte in the field (0 stays 0), mapped as section 5.1.1 says."""
    inverse = next((b for b in range(256) if times(a, b) == 1), 0)
    bits = [(inverse >> k) & 1 for k in range(8)]
    turned = [sum(bits[(k + shift) % 8] for shift in (0, 4, 5, 6, 7)) % 2 for k in range(8)]
    return sum(bit << k for k, bit in enumerate(turned)) ^ 0x63


S_BOX = [substitute(a) for a in range(256)]


def round_keys(key: bytes) -> list[list[int]]:
    """Return the keys of all rounds, 16 bytes each (section 5.2)."""
    words = [list(key[4 * k : 4 * k + 4]) for k in range(KEY_WORDS)]
    constant = 1
    while len(words) < 4 * (ROUNDS + 1):
        word = words[-1]
        if len(words) % KEY_WORDS == 0:
            word = [S_BOX[a] for a in word[1:] + word[:1]]
            word[0] ^= constant
            constant = times_x(constant)
        elif len(words) % KEY_WORDS == 4:
            word = [S_BOX[a] for a in word]
        words.append([a ^ b for a, b in zip(words[-KEY_WORDS], word, strict=True)])
    return [[byte for word in words[4 * k : 4 * k + 4] for byte in word] for k in range(ROUNDS + 1)]


def mix(column: list[int]) -> list[int]:
    """Multiply one column by the matrix of section 5.1.3."""
    rows = ((2, 3, 1, 1), (1, 2, 3, 1), (1, 1, 2, 3), (3, 1, 1, 2))
    mixed = []
    for row in rows:
        total = 0
        for factor, byte in zip(row, column, strict=True):
            total ^= times(byte, factor)
        mixed.append(total)
    return mixed


def encipher(key: bytes, block: bytes) -> bytes:
    """Encipher one block of 16 bytes; the state is kept column by column."""
    keys = round_keys(key)
    state = [a ^ b for a, b in zip(block, keys[0], strict=True)]
    for number in range(1, ROUNDS + 1):
        state = [S_BOX[a] for a in state]
        state = [state[(k + 4 * (k % 4)) % 16] for k in range(16)]  # row r turns by r columns
        if number < ROUNDS:
            state = [byte for k in range(0, 16, 4) for byte in mix(state[k : k + 4])]
        state = [a ^ b for a, b in zip(state, keys[number], strict=True)]
    return bytes(state)


def stream(key: bytes, n: int) -> bytes:
    """Return n bytes of counter mode from counter 0 on: the blocks that cipher the counters."""
    blocks = [encipher(key, k.to_bytes(16, "big")) for k in range(-(-n // 16))]
    return b"".join(blocks)[:n]
