/* The hashes of keys: zlib's CRC-32, mixed by a multiplication (aclog.authorizer.index.layout). */
#ifndef ACLOG_HASH_H
#define ACLOG_HASH_H

#include "plain.h"

#define SALT 0x85EBCA6Bu
#define FIBONACCI 0x9E3779B1u
#define SECOND_BIT 0xC2B2AE35u
#define CRC_START 0xFFFFFFFFu

extern uint32_t crc_tables[8][256];

/* Fills the tables; writes the same values each time it is called. */
void crc_prepare(void);

/* Continues a CRC: its state is the complement of the checksum so far. */
static inline uint32_t crc_more(uint32_t state, const uint8_t *data, size_t size)
{
    for (; size >= 8; data += 8, size -= 8) {
        uint32_t low = load_u32(data, 0) ^ state, high = load_u32(data, 1);
        state = crc_tables[7][low & 0xFF] ^ crc_tables[6][low >> 8 & 0xFF] ^ crc_tables[5][low >> 16 & 0xFF] ^
                crc_tables[4][low >> 24] ^ crc_tables[3][high & 0xFF] ^ crc_tables[2][high >> 8 & 0xFF] ^
                crc_tables[1][high >> 16 & 0xFF] ^ crc_tables[0][high >> 24];
    }
    while (size--)
        state = state >> 8 ^ crc_tables[0][(state ^ *data++) & 0xFF];
    return state;
}

/* The hash of a resource pattern, given the state after its name. */
static inline uint32_t resource_hash(uint32_t state, unsigned type, unsigned literal)
{
    return (~state + (type * 2 + literal) * SALT) * FIBONACCI;
}

/* The hash of a pair, given the state after its key. */
static inline uint32_t pair_hash(uint32_t state)
{
    return ~state * FIBONACCI;
}

#endif
