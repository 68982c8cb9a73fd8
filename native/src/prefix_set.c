#include "prefix_set.h"

#include "grow.h"

enum { FIRST_BITS_LOG = 10, BITS_EACH = 16 };

void prefix_set_free(prefix_set *self)
{
    for (size_t type = 0; type < TYPES; type++)
        free(self->lengths[type]);
    free(self->hashes);
    free(self->filter);
}

static void set_bit(prefix_set *self, uint32_t hash)
{
    uint32_t first = hash >> self->shift, second = (hash * SECOND_BIT) >> self->shift;
    self->filter[first >> 6] |= (uint64_t)1 << (first & 63);
    self->filter[second >> 6] |= (uint64_t)1 << (second & 63);
}

int prefix_set_may_have(const prefix_set *self, uint32_t hash)
{
    if (self->filter == NULL)
        return 0;
    uint32_t first = hash >> self->shift, second = (hash * SECOND_BIT) >> self->shift;
    return self->filter[first >> 6] >> (first & 63) & self->filter[second >> 6] >> (second & 63) & 1;
}

static int grow_filter(prefix_set *self, unsigned bits_log)
{
    uint64_t *filter = calloc((size_t)1 << (bits_log - 6), sizeof *filter);
    if (filter == NULL)
        return -1;
    free(self->filter);
    self->filter = filter;
    self->shift = 32 - bits_log;
    for (size_t at = 0; at < self->count; at++)
        set_bit(self, self->hashes[at]);
    return 0;
}

int prefix_set_reserve(prefix_set *self, unsigned type)
{
    if (grow((void **)&self->lengths[type], &self->length_capacity[type], self->length_count[type], sizeof(uint32_t)) ||
        grow((void **)&self->hashes, &self->capacity, self->count, sizeof(uint32_t)))
        return -1;
    unsigned bits_log = self->filter == NULL ? 0 : 32 - self->shift;
    if (bits_log != 0 && ((size_t)1 << bits_log >= BITS_EACH * (self->count + 1) || bits_log == 31))
        return 0;
    return grow_filter(self, bits_log == 0 ? FIRST_BITS_LOG : bits_log + 1);
}

void prefix_set_add(prefix_set *self, unsigned type, uint32_t length, uint32_t hash)
{
    self->hashes[self->count++] = hash;
    set_bit(self, hash);
    uint32_t *lengths = self->lengths[type];
    size_t at = 0, count = self->length_count[type];
    while (at < count && lengths[at] < length)
        at++;
    if (at < count && lengths[at] == length)
        return;
    memmove(lengths + at + 1, lengths + at, (count - at) * sizeof *lengths);
    lengths[at] = length;
    self->length_count[type]++;
}
