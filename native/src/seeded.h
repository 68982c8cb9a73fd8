/* A hash for one process. Its seed is secret, as that of Python's own hashes is, so that nobody can pick texts that
   collide; a CRC, which files need, can be made to collide at will. */
#ifndef ACLOG_SEEDED_H
#define ACLOG_SEEDED_H

#include "plain.h"

static inline uint64_t seeded_mix(uint64_t state, uint64_t word)
{
    state = (state ^ word) * 0xFF51AFD7ED558CCDu;
    return state ^ state >> 32;
}

/* Continues a hash with some bytes and their number. */
static inline uint64_t seeded_more(uint64_t state, const uint8_t *data, size_t size)
{
    state = seeded_mix(state, size);
    for (; size >= 8; data += 8, size -= 8)
        state = seeded_mix(state, load_u64(data, 0));
    uint64_t rest = 0;
    if (size)
        memcpy(&rest, data, size);
    return seeded_mix(state, rest);
}

static inline uint32_t seeded_end(uint64_t state)
{
    state *= 0xC4CEB9FE1A85EC53u;
    return (uint32_t)(state >> 32);
}

#endif
