/* Keys of resource patterns and of pairs, and the table in a flat base that numbers them. */
#ifndef ACLOG_KEYS_H
#define ACLOG_KEYS_H

#include "hash.h"

enum { LITERAL_BYTE = 3, PREFIXED_BYTE = 4 };

enum { CROWDED = 8 }; /* buckets with more keys are sorted by key, smaller ones are in any order */

/* A key that lies in pieces: head, first, middle, second, one after another. */
typedef struct {
    text first, second;
    uint32_t size;
    uint8_t head[6], middle[6];
    uint8_t head_size, middle_size;
} key;

/* Makes type, compact name, pattern; or compact principal, compact host. In place: a copy of bytes just written would
   wait for them. */
void resource_key(key *self, unsigned type, text name, unsigned literal);
void pair_key(key *self, text principal, text host);
/* Takes the principal and the host of a pair key; DAMAGED if it is none. */
int key_split(const uint8_t *data, size_t size, text *principal, text *host);
/* Copies the pieces to `into`, which has `self->size` bytes. */
void key_copy(const key *self, uint8_t *into);

/* The state of a pair key's CRC after its principal, and its hash, given that state. */
static inline uint32_t pair_key_begin(const key *self)
{
    return crc_more(crc_more(CRC_START, self->head, self->head_size), self->first.data, self->first.size);
}

static inline uint32_t pair_key_hash(const key *self, uint32_t after_principal)
{
    uint32_t state = crc_more(after_principal, self->middle, self->middle_size);
    return pair_hash(crc_more(state, self->second.data, self->second.size));
}

int key_equals(const key *self, const uint8_t *data, size_t size);
/* The order of bytes, as memcmp's result. */
int key_compare(const key *self, const uint8_t *data, size_t size);

#define EVERYBODY ((text){(const uint8_t *)"User:*", 6})
#define WILDCARD ((text){(const uint8_t *)"*", 1})

typedef struct {
    const uint8_t *data;
    uint64_t data_size;
    const uint8_t *offsets; /* uint32 by number, and the end */
    const uint8_t *buckets; /* int32: the first number of each bucket, and the end */
    uint32_t count;
    unsigned shift; /* a hash shifted right by it is the bucket */
} key_table;

/* Where a key's bucket is described. */
static inline const uint8_t *key_bucket(const key_table *table, uint32_t hash)
{
    return table->buckets + 4 * (size_t)((uint64_t)hash >> table->shift);
}

/* The numbers [low, high) in the bucket of a hash; DAMAGED if they are none of the table. */
static inline int key_numbers(const key_table *table, uint32_t hash, uint32_t *low, uint32_t *high)
{
    const uint8_t *bucket = key_bucket(table, hash);
    *low = load_u32(bucket, 0);
    *high = load_u32(bucket, 1);
    return *low <= *high && *high <= table->count ? 0 : DAMAGED;
}

/* The bytes of a key; NULL if they are out of bounds. */
static inline const uint8_t *key_at(const key_table *table, uint32_t number, size_t *size)
{
    uint32_t start = load_u32(table->offsets, number), end = load_u32(table->offsets, (size_t)number + 1);
    *size = (size_t)end - start;
    return start <= end && end <= table->data_size ? table->data + start : NULL;
}

/* The number of a key among those of its bucket, or ABSENT, or DAMAGED. */
int32_t key_find_among(const key_table *table, const key *wanted, uint32_t low, uint32_t high);
int32_t key_find(const key_table *table, const key *wanted, uint32_t hash);

#endif
