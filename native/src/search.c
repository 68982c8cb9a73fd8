#include "search.h"

#include "forest.h"

enum { LOOKUPS = 20 };

/* A key on its way through a table. Each step of all look-ups comes before the next step of any, and fetches what that
   one reads: so they wait for memory together and not one after another. */
typedef struct {
    const key_table *table;
    key wanted;
    uint32_t hash, low, high;
    int32_t found;
} lookup;

typedef struct {
    lookup items[LOOKUPS];
    size_t count;
    size_t literal; /* from here on, items are resource patterns: the LITERAL one, then prefixes */
    int in_forest; /* prefixes are found in the forest of names, since there are too many for look-ups */
} lookups;

static lookup *new_lookup(lookups *all, const key_table *table)
{
    lookup *item = &all->items[all->count++];
    item->table = table;
    return item;
}

static void fetch_bucket(lookup *item, uint32_t hash)
{
    item->hash = hash;
    PREFETCH(key_bucket(item->table, hash));
}

static int look_up_buckets(lookups *all, const flat *base)
{
    for (size_t at = 0; at < all->count; at++) {
        lookup *item = &all->items[at];
        if (key_numbers(item->table, item->hash, &item->low, &item->high) < 0)
            return DAMAGED;
        if (item->low == item->high)
            continue;
        PREFETCH(item->table->offsets + 4 * (size_t)item->low);
        if (at >= all->literal)
            PREFETCH(base->cell_starts + 4 * (size_t)item->low);
    }
    return 0;
}

static int look_up_keys(lookups *all)
{
    for (size_t at = 0; at < all->count; at++) {
        lookup *item = &all->items[at];
        size_t size;
        if (item->low == item->high)
            continue;
        const uint8_t *data = key_at(item->table, item->low, &size);
        if (data == NULL)
            return DAMAGED;
        PREFETCH(data);
    }
    for (size_t at = 0; at < all->count; at++) {
        lookup *item = &all->items[at];
        item->found = ABSENT;
        if (item->low != item->high)
            item->found = key_find_among(item->table, &item->wanted, item->low, item->high);
        if (item->found == DAMAGED)
            return DAMAGED;
    }
    return 0;
}

/* ---- the subject ---- */

static int is_wildcard(text value)
{
    return value.size == 1 && value.data[0] == '*';
}

static void begin_ranges(search *self)
{
    const request *asked = self->asked;
    if (range_set_is_empty(self->ranges) && (self->changes == NULL || range_set_is_empty(store_ranges(self->changes)))) {
        self->ranges = NULL;
        return;
    }
    self->host_status = address_read(asked->host, &self->address);
    if (self->host_status != 1)
        return;
    self->principal_hash = range_set_hash(self->seed, asked->principal);
    range_set_fetch(self->ranges, self->principal_hash);
}

static void begin_subject(search *self, lookups *all)
{
    const request *asked = self->asked;
    if (self->ranges != NULL)
        begin_ranges(self);
    const key_table *pairs = &self->base->pairs;
    lookup *own = new_lookup(all, pairs), *here = new_lookup(all, pairs);
    pair_key(&own->wanted, asked->principal, asked->host);
    uint32_t after_principal = pair_key_begin(&own->wanted);
    fetch_bucket(own, pair_key_hash(&own->wanted, after_principal));
    pair_key(&here->wanted, EVERYBODY, asked->host);
    fetch_bucket(here, pair_key_hash(&here->wanted, self->base->after_everybody));
    if (is_wildcard(asked->host))
        return; /* both hosts are one */
    lookup *anywhere = new_lookup(all, pairs);
    pair_key(&anywhere->wanted, asked->principal, WILDCARD);
    fetch_bucket(anywhere, pair_key_hash(&anywhere->wanted, after_principal));
}

static int add_owned(search *self, const range_set *known, int32_t owner, uint32_t *count)
{
    if (owner == ABSENT)
        return 0;
    int32_t *into = self->pairs + *count;
    int found = range_set_containing(known, owner, &self->address, into, MOST_PAIRS - *count);
    if (found > 0)
        *count += (uint32_t)found;
    return found;
}

/* Adds the pairs of a set whose range contains the address; 0 or ASK_PYTHON. */
static int add_ranges(search *self, const range_set *known)
{
    if (self->host_status == 0 || range_set_is_empty(known))
        return 0;
    if (self->host_status == ASK_PYTHON)
        return ASK_PYTHON;
    uint32_t count = self->pair_count;
    if (add_owned(self, known, range_set_owner(known, self->principal_hash, self->asked->principal), &count) < 0)
        return ASK_PYTHON;
    uint32_t first = count;
    if (add_owned(self, known, known->everybody, &count) < 0)
        return ASK_PYTHON;
    for (; first < count; first++)
        self->of_everybody |= (uint32_t)1 << first;
    while (count % PAIRS != 0)
        self->pairs[count++] = ABSENT;
    self->pair_count = count;
    return 0;
}

static int end_subject(search *self, const lookups *all)
{
    self->pairs[OWN] = all->items[0].found;
    self->pairs[EVERYBODY_HERE] = all->items[1].found;
    int both = !is_wildcard(self->asked->host);
    self->pairs[OWN_ANYWHERE] = both ? all->items[2].found : ABSENT;
    self->pairs[EVERYBODY_ANYWHERE] = both ? self->base->everybody : ABSENT;
    self->pair_count = PAIRS;
    return self->ranges == NULL ? 0 : add_ranges(self, self->ranges);
}

int search_own_pairs(search *self)
{
    if (self->own_pairs_found)
        return 0;
    self->own_pairs_found = 1;
    const request *asked = self->asked;
    const text principals[PAIRS] = {asked->principal, asked->principal, EVERYBODY, EVERYBODY};
    const text hosts[PAIRS] = {asked->host, WILDCARD, asked->host, WILDCARD};
    for (size_t at = 0; at < PAIRS; at++) {
        if (self->pairs[at] != ABSENT || (at % 2 && is_wildcard(asked->host)))
            continue;
        key wanted;
        pair_key(&wanted, principals[at], hosts[at]);
        self->pairs[at] = store_pair(self->changes, &wanted);
    }
    return self->ranges == NULL ? 0 : add_ranges(self, store_ranges(self->changes));
}

/* ---- the name ---- */

/* Adds the look-ups of a name: one pass over it gives the hash of every prefix. */
static int begin_name(search *self, lookups *all)
{
    const flat *base = self->base;
    unsigned type = self->asked->type;
    text name = self->asked->name;
    uint32_t state = CRC_START, done = 0;
    int32_t at = base->length_starts[type], end = base->length_starts[type + 1];
    all->literal = all->count;
    lookup *literal = new_lookup(all, &base->resources);
    resource_key(&literal->wanted, type, name, 1);
    all->in_forest = end - at > MANY_LENGTHS;
    for (; at < end && !all->in_forest; at++) {
        uint32_t length = load_u32(base->lengths, (size_t)at);
        if (length > name.size)
            break;
        if (length < done)
            return DAMAGED;
        state = crc_more(state, name.data + done, length - done);
        done = length;
        uint32_t hash = resource_hash(state, type, 0);
        if (!flat_may_have(base, hash))
            continue;
        all->in_forest = all->count == LOOKUPS;
        if (!all->in_forest) {
            lookup *item = new_lookup(all, &base->resources);
            resource_key(&item->wanted, type, (text){name.data, length}, 0);
            fetch_bucket(item, hash);
        }
    }
    fetch_bucket(literal, resource_hash(crc_more(state, name.data + done, name.size - done), type, 1));
    if (all->in_forest)
        all->count = all->literal + 1; /* the prefixes so far are in the forest, too */
    return 0;
}

static int add_level(const flat *base, level *levels, size_t *count, level found)
{
    if (found.resource < (int64_t)base->resources.count) {
        if (flat_cells(base, found.resource, &found.low, &found.high) < 0)
            return DAMAGED;
        if (found.low < found.high) {
            PREFETCH(base->cell_pairs + 4 * (size_t)found.low);
            PREFETCH(base->cell_masks + 4 * (size_t)found.low);
        }
    }
    levels[(*count)++] = found;
    return 0;
}

/* Visits the prefixes that only the changes have. */
static int own_prefixes(search *self)
{
    unsigned type = self->asked->type;
    text name = self->asked->name;
    uint32_t state = CRC_START, done = 0, length;
    for (size_t at = 0; (length = store_length(self->changes, type, at)) <= name.size; at++) {
        state = crc_more(state, name.data + done, length - done);
        done = length;
        if (!store_may_have(self->changes, resource_hash(state, type, 0)))
            continue;
        key wanted;
        resource_key(&wanted, type, (text){name.data, length}, 0);
        const level found = {.resource = store_resource(self->changes, &wanted), .length = length, .prefixed = 1};
        int status = found.resource == ABSENT ? 0 : self->visit(self, &found, 1);
        if (status != 0)
            return status;
    }
    return 0;
}

/* Visits what the look-ups found, and LITERAL `*`. */
static int end_name(search *self, const lookups *all)
{
    const flat *base = self->base;
    const request *asked = self->asked;
    level levels[LOOKUPS + 1]; /* every look-up may be one, and LITERAL `*` */
    size_t count = 0;
    for (size_t at = all->literal; at < all->count; at++) {
        const lookup *item = &all->items[at];
        level found = {
            .resource = item->found, .length = item->wanted.first.size, .prefixed = at > all->literal};
        if (found.resource == ABSENT && !found.prefixed && self->changes != NULL)
            found.resource = store_resource(self->changes, &item->wanted);
        if (found.resource != ABSENT && add_level(base, levels, &count, found) < 0)
            return DAMAGED;
    }
    int begins = asked->name.size > 0 && asked->name.data[0] == '*';
    if (!begins || (asked->documented && asked->name.size > 1)) {
        level found = {.resource = base->wildcards[asked->type], .length = 1, .wildcard = 1};
        if (found.resource == ABSENT && self->changes != NULL)
            found.resource = store_wildcard(self->changes, asked->type);
        if (found.resource != ABSENT && add_level(base, levels, &count, found) < 0)
            return DAMAGED;
    }
    int status = self->visit(self, levels, count);
    if (status == 0 && all->in_forest)
        status = forest_visit(self);
    if (status == 0 && self->changes != NULL)
        status = own_prefixes(self);
    return status;
}

int search_levels(search *self)
{
    lookups all;
    all.count = 0;
    begin_subject(self, &all);
    if (begin_name(self, &all) < 0)
        return DAMAGED;
    int has_address = self->ranges != NULL && self->host_status == 1;
    if (has_address)
        range_set_fetch_owner(self->ranges, self->principal_hash);
    if (look_up_buckets(&all, self->base) < 0)
        return DAMAGED;
    if (has_address)
        range_set_fetch_pairs(self->ranges, self->principal_hash, &self->address);
    if (look_up_keys(&all) < 0)
        return DAMAGED;
    int status = end_subject(self, &all);
    return status < 0 ? status : end_name(self, &all);
}

int search_candidates(search *self)
{
    lookups all;
    all.count = 0;
    if (begin_name(self, &all) < 0 || look_up_buckets(&all, self->base) < 0 || look_up_keys(&all) < 0)
        return DAMAGED;
    return end_name(self, &all);
}
