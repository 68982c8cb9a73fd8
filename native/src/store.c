#include "store.h"

#include "cells.h"
#include "own_keys.h"
#include "prefix_set.h"
#include "version_table.h"

#include <stdlib.h>

enum { STALE_VERSIONS = 8192 }; /* so many that nobody newer can see are always put up with */
enum { STALE_TIMES = 4 };       /* and so many for each cell that is left */

struct store {
    const flat *base;
    uint32_t version;
    own_keys resources, pairs;
    prefix_set prefixes;
    range_set ranges;
    int32_t wildcards[TYPES];
    version_table cells;   /* by resource << 32 | pair */
    version_table touched; /* by resource */
    size_t live;           /* how many cells are left at the newest version */
};

store *store_new(const flat *base, uint64_t seed)
{
    store *self = calloc(1, sizeof *self);
    if (self == NULL)
        return NULL;
    self->base = base;
    self->resources.seed = self->pairs.seed = self->ranges.seed = seed;
    self->resources.first = base->resources.count;
    self->pairs.first = base->pairs.count;
    for (size_t type = 0; type < TYPES; type++)
        self->wildcards[type] = ABSENT;
    return self;
}

void store_free(store *self)
{
    own_keys_free(&self->resources);
    own_keys_free(&self->pairs);
    prefix_set_free(&self->prefixes);
    range_set_free(&self->ranges);
    version_table_free(&self->cells);
    version_table_free(&self->touched);
    free(self);
}

uint32_t store_version(const store *self)
{
    return self->version;
}

static uint64_t cell_key(int32_t resource, int32_t pair)
{
    return (uint64_t)(uint32_t)resource << 32 | (uint32_t)pair;
}

/* ---- changing ---- */

static uint32_t prefix_hash(const key *resource)
{
    return resource_hash(crc_more(CRC_START, resource->first.data, resource->first.size), resource->head[0], 0);
}

/* Keeps what look-ups by name need of a resource that the base does not have. */
static void note_resource(store *self, const key *resource, int32_t number)
{
    unsigned type = resource->head[0];
    if (resource->middle[0] == PREFIXED_BYTE)
        prefix_set_add(&self->prefixes, type, resource->first.size, prefix_hash(resource));
    else if (resource->first.size == 1 && resource->first.data[0] == '*')
        self->wildcards[type] = number;
}

static int32_t add_pair(store *self, const key *pair)
{
    int32_t number = own_keys_add(&self->pairs, pair);
    range_set_add(&self->ranges, pair->first, pair->second, number);
    return number;
}

static int reserve(store *self, const key *resource, const key *pair)
{
    if (resource != NULL && (own_keys_reserve(&self->resources, resource->size) < 0 ||
                             prefix_set_reserve(&self->prefixes, resource->head[0]) < 0))
        return ABSENT;
    if (pair != NULL && (own_keys_reserve(&self->pairs, pair->size) < 0 ||
                         range_set_reserve(&self->ranges, pair->first, pair->second) < 0))
        return ABSENT;
    return version_table_reserve(&self->cells) < 0 || version_table_reserve(&self->touched) < 0 ? ABSENT : 0;
}

static void add_cell(store *self, uint64_t where, version_entry cell)
{
    const version_entry *before = version_table_newest(&self->cells, where);
    self->live += !cell.flag;
    self->live -= before != NULL && !before->flag;
    version_table_add(&self->cells, where, cell);
}

/* Numbers both keys as the base does, ABSENT if it does not have them. The look-ups wait for memory together. */
static int numbers_in_base(const flat *base, const change *made, int32_t *resource, int32_t *pair)
{
    uint32_t low[2], high[2];
    PREFETCH(key_bucket(&base->pairs, made->pair_hash));
    if (key_numbers(&base->resources, made->resource_hash, &low[0], &high[0]) < 0 ||
        key_numbers(&base->pairs, made->pair_hash, &low[1], &high[1]) < 0)
        return DAMAGED;
    PREFETCH(base->pairs.offsets + 4 * (size_t)low[1]);
    *resource = key_find_among(&base->resources, &made->resource, low[0], high[0]);
    *pair = key_find_among(&base->pairs, &made->pair, low[1], high[1]);
    return *resource == DAMAGED || *pair == DAMAGED ? DAMAGED : 0;
}

int store_put(store *self, const change *made)
{
    const flat *base = self->base;
    int32_t resource, pair;
    if (numbers_in_base(base, made, &resource, &pair) < 0)
        return DAMAGED;
    if (resource == ABSENT)
        resource = own_keys_find(&self->resources, &made->resource);
    if (pair == ABSENT)
        pair = own_keys_find(&self->pairs, &made->pair);
    /* All room is made first, so that nothing is half done without memory. */
    if (self->version == UINT32_MAX ||
        reserve(self, resource == ABSENT ? &made->resource : NULL, pair == ABSENT ? &made->pair : NULL) != 0)
        return ABSENT;
    if (resource == ABSENT) {
        resource = own_keys_add(&self->resources, &made->resource);
        note_resource(self, &made->resource, resource);
    }
    if (pair == ABSENT)
        pair = add_pair(self, &made->pair);
    uint32_t version = ++self->version;
    add_cell(self, cell_key(resource, pair), (version_entry){.version = version, .mask = made->mask, .flag = made->gone});
    const version_entry *known = version_table_newest(&self->touched, (uint32_t)resource);
    if (known == NULL || known->flag != made->has_rules) {
        const version_entry rules = {.version = version, .flag = made->has_rules};
        version_table_add(&self->touched, (uint32_t)resource, rules);
    }
    return 0;
}

/* ---- forking ---- */

int store_is_stale(const store *self)
{
    return self->cells.count - self->live > STALE_TIMES * self->live + STALE_VERSIONS;
}

/* Numbers in the store that is forked, and those in the fork. */
typedef struct {
    int32_t *resources, *pairs; /* of keys that the base does not have, from 0 on; ABSENT: not copied yet */
} renumbering;

static int32_t copied_key(own_keys *into, const own_keys *from, int32_t *numbers, int32_t number)
{
    if (number < (int64_t)from->first)
        return number;
    int32_t *known = &numbers[(uint32_t)number - from->first];
    if (*known == ABSENT && own_keys_reserve(into, own_keys_bytes(from, number).size) == 0)
        *known = own_keys_copy(into, from, number);
    return *known;
}

/* Takes the pieces of a resource key. */
static void take_pieces(key *self, text bytes)
{
    uint32_t start = 1;
    while (bytes.data[start] >= 0x80)
        start++;
    const text name = {bytes.data + start + 1, bytes.size - start - 2};
    resource_key(self, bytes.data[0], name, bytes.data[bytes.size - 1] == LITERAL_BYTE);
}

static int32_t copied_resource(store *into, const store *from, int32_t *numbers, int32_t number)
{
    uint32_t before = into->resources.count;
    if (number >= (int64_t)from->resources.first) {
        key whole;
        take_pieces(&whole, own_keys_bytes(&from->resources, number));
        if (prefix_set_reserve(&into->prefixes, whole.head[0]) < 0)
            return ABSENT;
        number = copied_key(&into->resources, &from->resources, numbers, number);
        if (into->resources.count > before)
            note_resource(into, &whole, number);
    }
    return number;
}

static int32_t copied_pair(store *into, const store *from, int32_t *numbers, int32_t number)
{
    uint32_t before = into->pairs.count;
    if (number >= (int64_t)from->pairs.first) {
        text bytes = own_keys_bytes(&from->pairs, number), principal, host;
        if (key_split(bytes.data, bytes.size, &principal, &host) < 0 ||
            range_set_reserve(&into->ranges, principal, host) < 0)
            return ABSENT;
        number = copied_key(&into->pairs, &from->pairs, numbers, number);
        if (into->pairs.count > before)
            range_set_add(&into->ranges, principal, host, number);
    }
    return number;
}

/* Whether the base has ACLs in a cell. */
static int base_has(const flat *base, uint64_t where)
{
    int32_t resource = (int32_t)(where >> 32);
    const int32_t pairs[PAIRS] = {(int32_t)(uint32_t)where, ABSENT, ABSENT, ABSENT};
    uint32_t low, high, cells[PAIRS];
    if (resource >= (int64_t)base->resources.count || pairs[0] >= (int64_t)base->pairs.count)
        return 0;
    if (flat_cells(base, resource, &low, &high) < 0)
        return 1; /* damaged: it stays as it is */
    if (low == high)
        return 0;
    cells_find(base, low, high, pairs, cells);
    return cells[0] != NO_CELL;
}

static int copy_cells(store *into, const store *from, uint32_t version, const renumbering *numbers)
{
    for (size_t at = 0; at < from->cells.slot_count; at++) {
        const version_slot *slot = &from->cells.slots[at];
        if (slot->newest == ABSENT)
            continue;
        const version_entry *cell = version_table_at(&from->cells, &from->cells.entries[slot->newest], version);
        /* A cell of which nothing is left is as if it had never been, unless it hides one of the base. */
        if (cell == NULL || (cell->flag && !base_has(from->base, slot->key)))
            continue;
        int32_t resource = copied_resource(into, from, numbers->resources, (int32_t)(slot->key >> 32));
        int32_t pair = copied_pair(into, from, numbers->pairs, (int32_t)(uint32_t)slot->key);
        if (resource == ABSENT || pair == ABSENT || version_table_reserve(&into->cells) < 0)
            return -1;
        add_cell(into, cell_key(resource, pair), *cell);
    }
    return 0;
}

static int copy_touched(store *into, const store *from, uint32_t version, const renumbering *numbers)
{
    for (size_t at = 0; at < from->touched.slot_count; at++) {
        const version_slot *slot = &from->touched.slots[at];
        if (slot->newest == ABSENT)
            continue;
        const version_entry *rules = version_table_at(&from->touched, &from->touched.entries[slot->newest], version);
        uint32_t resource = (uint32_t)slot->key;
        if (resource >= from->resources.first)
            resource = (uint32_t)numbers->resources[resource - from->resources.first];
        if (rules == NULL || resource == (uint32_t)ABSENT)
            continue; /* it had no cell that is left */
        if (version_table_reserve(&into->touched) < 0)
            return -1;
        version_table_add(&into->touched, resource, *rules);
    }
    return 0;
}

store *store_fork(const store *self, uint32_t version)
{
    store *fork = store_new(self->base, self->resources.seed);
    size_t resources = sizeof(int32_t) * self->resources.count, pairs = sizeof(int32_t) * self->pairs.count;
    const renumbering numbers = {malloc(resources + 1), malloc(pairs + 1)};
    int failed = fork == NULL || numbers.resources == NULL || numbers.pairs == NULL;
    if (!failed) {
        memset(numbers.resources, 0xFF, resources); /* ABSENT everywhere */
        memset(numbers.pairs, 0xFF, pairs);
        fork->version = version;
        failed = copy_cells(fork, self, version, &numbers) < 0 || copy_touched(fork, self, version, &numbers) < 0;
    }
    free(numbers.resources);
    free(numbers.pairs);
    if (failed && fork != NULL) {
        store_free(fork);
        fork = NULL;
    }
    return fork;
}

/* ---- reading ---- */

int32_t store_resource(const store *self, const key *wanted)
{
    return own_keys_find(&self->resources, wanted);
}

int32_t store_pair(const store *self, const key *wanted)
{
    return own_keys_find(&self->pairs, wanted);
}

text store_pair_bytes(const store *self, int32_t number)
{
    return own_keys_bytes(&self->pairs, number);
}

const range_set *store_ranges(const store *self)
{
    return &self->ranges;
}

int32_t store_wildcard(const store *self, unsigned type)
{
    return self->wildcards[type];
}

uint32_t store_length(const store *self, unsigned type, size_t at)
{
    return at < self->prefixes.length_count[type] ? self->prefixes.lengths[type][at] : UINT32_MAX;
}

int store_may_have(const store *self, uint32_t hash)
{
    return prefix_set_may_have(&self->prefixes, hash);
}

const version_entry *store_touched(const store *self, int32_t resource)
{
    return version_table_newest(&self->touched, (uint32_t)resource);
}

int store_has_rules(const store *self, const version_entry *touched, uint32_t version)
{
    const version_entry *rules = version_table_at(&self->touched, touched, version);
    return rules == NULL ? ABSENT : rules->flag;
}

const version_entry *store_cell(const store *self, int32_t resource, int32_t pair, uint32_t version)
{
    const version_entry *newest = version_table_newest(&self->cells, cell_key(resource, pair));
    return version_table_at(&self->cells, newest, version);
}
