#include "range_set.h"

#include "grow.h"
#include "seeded.h"

/* ---- reading addresses and ranges ---- */

typedef struct {
    const uint8_t *at, *end;
} cursor;

static int skip(cursor *self, uint8_t byte)
{
    if (self->at == self->end || *self->at != byte)
        return 0;
    self->at++;
    return 1;
}

static int digit_of(uint8_t byte)
{
    if (byte >= '0' && byte <= '9')
        return byte - '0';
    uint8_t lower = byte | 0x20;
    return lower >= 'a' && lower <= 'f' ? lower - 'a' + 10 : -1;
}

/* Reads as many digits of a base as there are; how many, or 0 if there are more than `most`. */
static unsigned digits(cursor *self, int base, unsigned most, uint32_t *value)
{
    unsigned count = 0;
    int digit;
    for (*value = 0; self->at < self->end && (digit = digit_of(*self->at)) >= 0 && digit < base; self->at++) {
        if (++count > most)
            return 0;
        *value = *value * (uint32_t)base + (uint32_t)digit;
    }
    return count;
}

/* Reads four groups; of the host of a request, as ipaddress reads it, none has leading zeros. */
static int ipv4(cursor *self, int leading_zeros, uint32_t *number)
{
    *number = 0;
    for (int group = 0; group < 4; group++) {
        uint32_t value;
        if (group != 0 && !skip(self, '.'))
            return 0;
        int zero = self->at < self->end && *self->at == '0';
        unsigned count = digits(self, 10, 3, &value);
        if (count == 0 || value > 255 || (zero && count > 1 && !leading_zeros))
            return 0;
        *number = *number << 8 | value;
    }
    return 1;
}

/* Reads groups of up to four digits, with or without `::`; 0 if it is anything else, be it an address or not. */
static int ipv6(cursor *self, address *found)
{
    uint32_t groups[8];
    int count = 0, gap = -1;
    if (self->end - self->at >= 2 && self->at[0] == ':' && self->at[1] == ':') {
        self->at += 2;
        gap = 0;
    }
    while (self->at < self->end && digit_of(*self->at) >= 0) {
        if (count == 8 || digits(self, 16, 4, &groups[count++]) == 0)
            return 0;
        if (!skip(self, ':'))
            break;
        if (skip(self, ':')) {
            if (gap >= 0)
                return 0;
            gap = count;
        } else if (self->at == self->end || digit_of(*self->at) < 0) {
            return 0;
        }
    }
    if (gap < 0 ? count != 8 : count > 7)
        return 0;
    *found = (address){.is_ipv6 = 1};
    for (int place = 0; place < 8; place++) {
        int number = gap < 0 || place < gap ? place : place - (8 - count);
        uint64_t group = gap >= 0 && place >= gap && number < gap ? 0 : groups[number];
        uint64_t *half = place < 4 ? &found->high : &found->low;
        *half = *half << 16 | group;
    }
    return 1;
}

static int is_mapped(const address *value)
{
    return value->high == 0 && value->low >> 32 == 0xFFFF;
}

/* A client with an IPv4 address; no IPv4 range contains 0.0.0.0. */
static int take_ipv4(address *found, uint32_t value)
{
    *found = (address){.high = (uint64_t)value << 32};
    return value != 0;
}

static int is_scope(cursor rest)
{
    if (rest.end - rest.at < 1 || rest.end - rest.at > 32)
        return 0;
    for (; rest.at < rest.end; rest.at++) {
        uint8_t byte = *rest.at, lower = byte | 0x20;
        if (!((byte >= '0' && byte <= '9') || (lower >= 'a' && lower <= 'z') || memchr("._@-", byte, 4) != NULL))
            return 0;
    }
    return 1;
}

int address_read(text host, address *found)
{
    cursor rest = {host.data, host.data + host.size};
    uint32_t value;
    if (host.size == 0)
        return 0;
    if (memchr(host.data, ':', host.size) == NULL)
        return ipv4(&rest, 0, &value) && rest.at == rest.end && take_ipv4(found, value);
    if (!ipv6(&rest, found) || (rest.at < rest.end && !(skip(&rest, '%') && is_scope(rest))))
        return ASK_PYTHON;
    return is_mapped(found) ? take_ipv4(found, (uint32_t)found->low) : 1;
}

static int ipv4_range(text host, address *first, uint32_t *length)
{
    cursor rest = {host.data, host.data + host.size};
    uint32_t value;
    if (!ipv4(&rest, 1, &value) || !skip(&rest, '/') || digits(&rest, 10, 2, length) == 0 || rest.at != rest.end)
        return 0;
    *first = (address){.high = (uint64_t)value << 32};
    return *length <= 32;
}

static int ipv6_range(text host, address *first, uint32_t *length)
{
    const uint8_t *slash = memchr(host.data, '/', host.size);
    cursor base = {host.data, slash}, rest = {slash + 1, host.data + host.size};
    /* What Java reads as an address has no other bytes before the slash, whatever else it may have. */
    for (const uint8_t *at = host.data; at < slash; at++)
        if (digit_of(*at) < 0 && memchr(":.%[]", *at, 5) == NULL)
            return 0;
    if (!ipv6(&base, first) || base.at != base.end || digits(&rest, 10, 9, length) == 0 || rest.at != rest.end)
        return ASK_PYTHON;
    return *length <= 128 && !is_mapped(first); /* clients with such addresses show up as IPv4 */
}

static void cut(address *value, uint32_t length)
{
    value->high &= length >= 64 ? UINT64_MAX : ~(UINT64_MAX >> length);
    if (length < 128)
        value->low &= length <= 64 ? 0 : ~(UINT64_MAX >> (length - 64));
}

static int has_slash(text host)
{
    return host.size != 0 && memchr(host.data, '/', host.size) != NULL;
}

/* Reads the host of an ACL: 1, or 0 if it is no range, or ASK_PYTHON if it may be an IPv6 range. */
static int range_read(text host, address *first, uint32_t *length)
{
    if (!has_slash(host))
        return 0;
    int is_ipv6 = memchr(host.data, ':', host.size) != NULL;
    int status = is_ipv6 ? ipv6_range(host, first, length) : ipv4_range(host, first, length);
    if (status == 1)
        cut(first, *length);
    return status;
}

/* ---- tables ---- */

static void enter(range_table *self, range_slot added)
{
    size_t at = added.hash & (self->count - 1);
    while (self->slots[at].index != ABSENT)
        at = (at + 1) & (self->count - 1);
    self->slots[at] = added;
}

/* Makes room for so many more items. */
static int table_reserve(range_table *self, size_t more)
{
    if (2 * (self->used + more) <= self->count)
        return 0;
    range_table larger = {.count = self->count ? self->count : 16, .used = self->used};
    while (2 * (self->used + more) > larger.count)
        larger.count *= 2;
    larger.slots = malloc(larger.count * sizeof *larger.slots);
    if (larger.slots == NULL)
        return -1;
    memset(larger.slots, 0xFF, larger.count * sizeof *larger.slots); /* ABSENT everywhere */
    for (size_t at = 0; at < self->count; at++)
        if (self->slots[at].index != ABSENT)
            enter(&larger, self->slots[at]);
    free(self->slots);
    *self = larger;
    return 0;
}

static void table_add(range_table *self, uint32_t hash, size_t index)
{
    enter(self, (range_slot){.hash = hash, .index = (int32_t)index});
    self->used++;
}

/* ---- principals ---- */

uint32_t range_set_hash(uint64_t seed, text principal)
{
    seeded state = seeded_begin(seed);
    seeded_more(&state, principal.data, principal.size);
    return seeded_end(&state);
}

int32_t range_set_owner(const range_set *self, uint32_t hash, text principal)
{
    const range_table *table = &self->owners_by_name;
    if (table->count == 0)
        return ABSENT;
    for (size_t at = hash & (table->count - 1); table->slots[at].index != ABSENT; at = (at + 1) & (table->count - 1)) {
        if (table->slots[at].hash != hash)
            continue;
        const range_owner *owner = &self->owners[table->slots[at].index];
        if (owner->size == principal.size && memcmp(self->bytes + owner->name, principal.data, principal.size) == 0)
            return table->slots[at].index;
    }
    return ABSENT;
}

static int32_t add_owner(range_set *self, text principal)
{
    uint32_t hash = range_set_hash(self->seed, principal);
    int32_t known = range_set_owner(self, hash, principal);
    if (known != ABSENT)
        return known;
    size_t index = self->owner_count++;
    if (principal.size)
        memcpy(self->bytes + self->byte_count, principal.data, principal.size);
    self->owners[index] = (range_owner){.name = self->byte_count, .size = principal.size};
    self->byte_count += principal.size;
    table_add(&self->owners_by_name, hash, index);
    int is_everybody = principal.size == EVERYBODY.size && memcmp(principal.data, EVERYBODY.data, EVERYBODY.size) == 0;
    if (index == 0)
        self->everybody = ABSENT;
    if (is_everybody)
        self->everybody = (int32_t)index;
    return (int32_t)index;
}

/* ---- pairs ---- */

static uint32_t hash_of(const range_set *self, uint32_t owner, uint32_t length, const address *first)
{
    seeded state = seeded_begin(self->seed);
    seeded_word(&state, (uint64_t)owner << 32 | (uint32_t)first->is_ipv6 << 8 | length);
    seeded_word(&state, first->high);
    if (first->is_ipv6)
        seeded_word(&state, first->low);
    return seeded_end(&state);
}

/* The slot of an owner's range, or NULL. */
static range_slot *find(const range_set *self, uint32_t hash, uint32_t owner, uint32_t length, const address *first)
{
    const range_table *table = &self->pairs_by_range;
    if (table->count == 0)
        return NULL;
    for (size_t at = hash & (table->count - 1); table->slots[at].index != ABSENT; at = (at + 1) & (table->count - 1)) {
        if (table->slots[at].hash != hash)
            continue;
        const range_pair *here = &self->pairs[table->slots[at].index];
        if (here->owner == owner && here->length == length && here->first.is_ipv6 == first->is_ipv6 &&
            here->first.high == first->high && here->first.low == first->low)
            return &table->slots[at];
    }
    return NULL;
}

int range_set_reserve(range_set *self, text principal, text host)
{
    if (!has_slash(host))
        return 0;
    if (self->pair_count >= INT32_MAX - 1)
        return -1;
    if (self->byte_capacity - self->byte_count < principal.size) {
        size_t capacity = 2 * self->byte_capacity + principal.size + 256;
        uint8_t *bytes = realloc(self->bytes, capacity);
        if (bytes == NULL)
            return -1;
        self->bytes = bytes;
        self->byte_capacity = capacity;
    }
    if (grow((void **)&self->owners, &self->owner_capacity, self->owner_count, sizeof *self->owners) < 0 ||
        grow((void **)&self->pairs, &self->pair_capacity, self->pair_count, sizeof *self->pairs) < 0)
        return -1;
    return table_reserve(&self->owners_by_name, 1) < 0 || table_reserve(&self->pairs_by_range, 1) < 0 ? -1 : 0;
}

void range_set_add(range_set *self, text principal, text host, int32_t pair)
{
    range_pair added = {.pair = pair, .next = ABSENT};
    int status = range_read(host, &added.first, &added.length);
    if (status == 0)
        return;
    added.owner = (uint32_t)add_owner(self, principal);
    range_owner *owner = &self->owners[added.owner];
    if (status == ASK_PYTHON) {
        owner->has_odd = 1;
        return;
    }
    size_t word = added.first.is_ipv6 ? IPV6_LENGTHS + added.length / 64 : 0, index = self->pair_count++;
    owner->lengths[word] |= (uint64_t)1 << added.length % 64;
    uint32_t hash = hash_of(self, added.owner, added.length, &added.first);
    range_slot *known = find(self, hash, added.owner, added.length, &added.first);
    if (known != NULL) {
        added.next = known->index;
        known->index = (int32_t)index;
    } else {
        table_add(&self->pairs_by_range, hash, index);
    }
    self->pairs[index] = added;
}

int range_set_add_base(range_set *self, const flat *base)
{
    if (base->range_count != 0 && table_reserve(&self->pairs_by_range, base->range_count) < 0)
        return ABSENT;
    for (size_t at = 0; at < base->range_count; at++) {
        int32_t number = load_i32(base->range_pairs, at);
        size_t size;
        text principal, host;
        if (number < 0 || number >= (int64_t)base->pairs.count)
            return DAMAGED;
        const uint8_t *data = key_at(&base->pairs, (uint32_t)number, &size);
        if (data == NULL || key_split(data, size, &principal, &host) < 0)
            return DAMAGED;
        if (range_set_reserve(self, principal, host) < 0)
            return ABSENT;
        range_set_add(self, principal, host, number);
    }
    return 0;
}

void range_set_free(range_set *self)
{
    free(self->owners);
    free(self->owners_by_name.slots);
    free(self->pairs);
    free(self->pairs_by_range.slots);
    free(self->bytes);
    *self = (range_set){0};
}

/* ---- looking up ---- */

static unsigned lowest_bit(uint64_t bits)
{
#if defined(__GNUC__) || defined(__clang__)
    return (unsigned)__builtin_ctzll(bits);
#else
    unsigned place = 0;
    while (!(bits >> place & 1))
        place++;
    return place;
#endif
}

static size_t first_word(const address *wanted)
{
    return wanted->is_ipv6 ? IPV6_LENGTHS : 0;
}

static size_t end_word(const address *wanted)
{
    return wanted->is_ipv6 ? LENGTH_WORDS : IPV6_LENGTHS;
}

int range_set_containing(const range_set *self, int32_t owner, const address *wanted, int32_t *found, size_t most)
{
    const range_owner *asked = &self->owners[owner];
    if (wanted->is_ipv6 && asked->has_odd)
        return ASK_PYTHON;
    size_t count = 0, from = first_word(wanted);
    for (size_t word = from; word < end_word(wanted); word++) {
        for (uint64_t bits = asked->lengths[word]; bits != 0; bits &= bits - 1) {
            uint32_t length = (uint32_t)(word - from) * 64 + lowest_bit(bits);
            address first = *wanted;
            cut(&first, length);
            uint32_t hash = hash_of(self, (uint32_t)owner, length, &first);
            const range_slot *slot = find(self, hash, (uint32_t)owner, length, &first);
            for (int32_t at = slot == NULL ? ABSENT : slot->index; at != ABSENT; at = self->pairs[at].next) {
                if (count == most)
                    return ASK_PYTHON;
                found[count++] = self->pairs[at].pair;
            }
        }
    }
    return (int)count;
}

/* ---- fetching ---- */

void range_set_fetch(const range_set *self, uint32_t hash)
{
    const range_table *table = &self->owners_by_name;
    if (table->count != 0)
        PREFETCH(&table->slots[hash & (table->count - 1)]);
}

/* An owner whose name has this hash, most likely the one; or ABSENT. */
static int32_t likely_owner(const range_set *self, uint32_t hash)
{
    const range_table *table = &self->owners_by_name;
    if (table->count == 0)
        return ABSENT;
    const range_slot *slot = &table->slots[hash & (table->count - 1)];
    return slot->index != ABSENT && slot->hash == hash ? slot->index : ABSENT;
}

void range_set_fetch_owner(const range_set *self, uint32_t hash)
{
    int32_t owner = likely_owner(self, hash);
    if (owner != ABSENT)
        PREFETCH(&self->owners[owner]);
}

void range_set_fetch_pairs(const range_set *self, uint32_t hash, const address *wanted)
{
    int32_t owner = likely_owner(self, hash);
    if (owner == ABSENT)
        return;
    const range_owner *asked = &self->owners[owner];
    const range_table *table = &self->pairs_by_range;
    size_t from = first_word(wanted);
    PREFETCH(self->bytes + asked->name);
    for (size_t word = from; table->count != 0 && word < end_word(wanted); word++) {
        for (uint64_t bits = asked->lengths[word]; bits != 0; bits &= bits - 1) {
            uint32_t length = (uint32_t)(word - from) * 64 + lowest_bit(bits);
            address first = *wanted;
            cut(&first, length);
            PREFETCH(&table->slots[hash_of(self, (uint32_t)owner, length, &first) & (table->count - 1)]);
        }
    }
}
