/* Keys that a base does not have, numbered from its count on; a table that grows. */
#ifndef ACLOG_OWN_KEYS_H
#define ACLOG_OWN_KEYS_H

#include "keys.h"

typedef struct {
    size_t offset; /* in `bytes` */
    uint32_t size, hash;
} own_key;

typedef struct {
    uint64_t seed;
    uint32_t first; /* the number of the first key */
    uint32_t count, capacity;
    own_key *keys;
    int32_t *slots; /* indices of `keys` by hash, open addressing; ABSENT: empty */
    size_t slot_count; /* a power of two, at least twice `count`; 0 before the first key */
    uint8_t *bytes;
    size_t byte_count, byte_capacity;
} own_keys;

void own_keys_free(own_keys *self);
/* The number of a key, or ABSENT. */
int32_t own_keys_find(const own_keys *self, const key *wanted);
/* The bytes of a key that is in the table. */
static inline text own_keys_bytes(const own_keys *self, int32_t number)
{
    const own_key *found = &self->keys[(uint32_t)number - self->first];
    return (text){self->bytes + found->offset, found->size};
}

/* Makes room for one more key of this size; -1 without memory. */
int own_keys_reserve(own_keys *self, uint32_t size);
/* Adds a key that is not there yet, after room was made; its number. */
int32_t own_keys_add(own_keys *self, const key *added);
/* The same for a key of another table with the same seed, given its number there. */
int32_t own_keys_copy(own_keys *self, const own_keys *from, int32_t number);

#endif
