#include "keys.h"

/* Writes the length of a compact string: an unsigned varint of the size plus one. */
static uint8_t put_length(uint8_t *into, uint32_t size)
{
    uint8_t count = 0;
    for (size++; size >= 0x80; size >>= 7)
        into[count++] = (uint8_t)(size | 0x80);
    into[count++] = (uint8_t)size;
    return count;
}

static void add_sizes(key *self)
{
    self->size = self->head_size + self->first.size + self->middle_size + self->second.size;
}

void resource_key(key *self, unsigned type, text name, unsigned literal)
{
    self->head[0] = (uint8_t)type;
    self->head_size = (uint8_t)(1 + put_length(self->head + 1, name.size));
    self->first = name;
    self->middle[0] = literal ? LITERAL_BYTE : PREFIXED_BYTE;
    self->middle_size = 1;
    self->second = (text){NULL, 0};
    add_sizes(self);
}

void pair_key(key *self, text principal, text host)
{
    self->head_size = put_length(self->head, principal.size);
    self->first = principal;
    self->middle_size = put_length(self->middle, host.size);
    self->second = host;
    add_sizes(self);
}

/* Takes a compact string at the beginning of some bytes; what it takes of them, or 0. */
static size_t take_compact(const uint8_t *data, size_t size, text *found)
{
    uint64_t length = 0;
    size_t at = 0;
    for (unsigned shift = 0; at < size && at < 5; shift += 7) {
        length |= (uint64_t)(data[at] & 0x7F) << shift;
        if (data[at++] < 0x80) {
            if (length == 0 || length - 1 > size - at || length > LONGEST_TEXT)
                return 0;
            *found = (text){data + at, (uint32_t)(length - 1)};
            return at + (size_t)length - 1;
        }
    }
    return 0;
}

int key_split(const uint8_t *data, size_t size, text *principal, text *host)
{
    size_t taken = take_compact(data, size, principal);
    size_t rest = taken == 0 ? 0 : take_compact(data + taken, size - taken, host);
    return rest != 0 && taken + rest == size ? 0 : DAMAGED;
}

static uint8_t *append(uint8_t *into, const uint8_t *data, size_t size)
{
    if (size)
        memcpy(into, data, size);
    return into + size;
}

void key_copy(const key *self, uint8_t *into)
{
    into = append(into, self->head, self->head_size);
    into = append(into, self->first.data, self->first.size);
    into = append(into, self->middle, self->middle_size);
    append(into, self->second.data, self->second.size);
}

static int same_few(const uint8_t *left, const uint8_t *right, unsigned count)
{
    unsigned differs = 0;
    for (unsigned at = 0; at < count; at++)
        differs |= left[at] ^ right[at];
    return !differs;
}

int key_equals(const key *self, const uint8_t *data, size_t size)
{
    if (self->size != size || !same_few(self->head, data, self->head_size))
        return 0;
    data += self->head_size;
    const uint8_t *middle = data + self->first.size;
    if (!same_few(self->middle, middle, self->middle_size) || memcmp(self->first.data, data, self->first.size) != 0)
        return 0;
    return self->second.size == 0 || memcmp(self->second.data, middle + self->middle_size, self->second.size) == 0;
}

int key_compare(const key *self, const uint8_t *data, size_t size)
{
    const text pieces[] = {
        {self->head, self->head_size}, self->first, {self->middle, self->middle_size}, self->second};
    for (size_t number = 0; number < sizeof pieces / sizeof *pieces; number++) {
        text piece = pieces[number];
        size_t shared = piece.size < size ? piece.size : size;
        int order = shared ? memcmp(piece.data, data, shared) : 0;
        if (order != 0)
            return order;
        if (shared < piece.size)
            return 1;
        data += shared;
        size -= shared;
    }
    return size ? -1 : 0;
}

/* The first number in [low, high) whose key is not less than the wanted one; -1 if a key is out of bounds. */
static int64_t bisect(const key_table *table, const key *wanted, uint32_t low, uint32_t high)
{
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        size_t size;
        const uint8_t *data = key_at(table, middle, &size);
        if (data == NULL)
            return -1;
        if (key_compare(wanted, data, size) > 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

int32_t key_find_among(const key_table *table, const key *wanted, uint32_t low, uint32_t high)
{
    if (high - low > CROWDED) {
        int64_t found = bisect(table, wanted, low, high);
        if (found < 0)
            return DAMAGED;
        low = (uint32_t)found;
        high = low < high ? low + 1 : high;
    }
    for (uint32_t number = low; number < high; number++) {
        size_t size;
        const uint8_t *data = key_at(table, number, &size);
        if (data == NULL)
            return DAMAGED;
        if (key_equals(wanted, data, size))
            return (int32_t)number;
    }
    return ABSENT;
}

int32_t key_find(const key_table *table, const key *wanted, uint32_t hash)
{
    uint32_t low, high;
    if (key_numbers(table, hash, &low, &high) < 0)
        return DAMAGED;
    return key_find_among(table, wanted, low, high);
}
