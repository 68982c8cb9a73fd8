/* SipHash-1-3, as Python hashes its own texts. Its seed is secret, so nobody can pick texts that collide; a CRC, which
   files need, can be made to collide at will. */
#ifndef ACLOG_SEEDED_H
#define ACLOG_SEEDED_H

#include "plain.h"

typedef struct {
    uint64_t v0, v1, v2, v3;
} seeded;

static inline uint64_t seeded_turn(uint64_t value, unsigned bits)
{
    return value << bits | value >> (64 - bits);
}

static inline void seeded_round(seeded *self)
{
    self->v0 += self->v1;
    self->v1 = seeded_turn(self->v1, 13) ^ self->v0;
    self->v0 = seeded_turn(self->v0, 32);
    self->v2 += self->v3;
    self->v3 = seeded_turn(self->v3, 16) ^ self->v2;
    self->v0 += self->v3;
    self->v3 = seeded_turn(self->v3, 21) ^ self->v0;
    self->v2 += self->v1;
    self->v1 = seeded_turn(self->v1, 17) ^ self->v2;
    self->v2 = seeded_turn(self->v2, 32);
}

static inline seeded seeded_begin(uint64_t seed)
{
    uint64_t other = seeded_turn(seed, 32) * 0x9E3779B97F4A7C15u;
    return (seeded){seed ^ 0x736F6D6570736575u, other ^ 0x646F72616E646F6Du, seed ^ 0x6C7967656E657261u,
                    other ^ 0x7465646279746573u};
}

static inline void seeded_word(seeded *self, uint64_t word)
{
    self->v3 ^= word;
    seeded_round(self);
    self->v0 ^= word;
}

/* Takes some bytes and, with the last of them, their number. */
static inline void seeded_more(seeded *self, const uint8_t *data, size_t size)
{
    uint64_t last = (uint64_t)size << 56;
    for (; size >= 8; data += 8, size -= 8)
        seeded_word(self, load_u64(data, 0));
    for (size_t at = 0; at < size; at++)
        last |= (uint64_t)data[at] << 8 * at;
    seeded_word(self, last);
}

static inline uint32_t seeded_end(seeded *self)
{
    self->v2 ^= 0xFF;
    seeded_round(self);
    seeded_round(self);
    seeded_round(self);
    return (uint32_t)(self->v0 ^ self->v1 ^ self->v2 ^ self->v3);
}

#endif
