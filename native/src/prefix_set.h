/* What is known about the prefixed names that only the changes have: their lengths by type, and a filter. */
#ifndef ACLOG_PREFIX_SET_H
#define ACLOG_PREFIX_SET_H

#include "flat.h"

typedef struct {
    uint32_t *lengths[TYPES]; /* distinct, in bytes, ascending */
    size_t length_count[TYPES], length_capacity[TYPES];
    uint32_t *hashes; /* of all names, to fill a larger filter */
    size_t count, capacity;
    uint64_t *filter; /* NULL before the first name */
    unsigned shift;
} prefix_set;

void prefix_set_free(prefix_set *self);
/* Makes room for one more name of a type; -1 without memory. */
int prefix_set_reserve(prefix_set *self, unsigned type);
/* Adds a name by its length and its hash, after room was made. */
void prefix_set_add(prefix_set *self, unsigned type, uint32_t length, uint32_t hash);
int prefix_set_may_have(const prefix_set *self, uint32_t hash);

#endif
