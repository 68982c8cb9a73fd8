#include "own_keys.h"

#include "seeded.h"

#include <stdlib.h>

enum { FIRST_KEYS = 16, FIRST_BYTES = 1024 };

void own_keys_free(own_keys *self)
{
    free(self->keys);
    free(self->slots);
    free(self->bytes);
}

static uint32_t hash_of(const own_keys *self, const key *wanted)
{
    seeded state = seeded_begin(self->seed);
    seeded_more(&state, wanted->head, wanted->head_size);
    seeded_more(&state, wanted->first.data, wanted->first.size);
    seeded_more(&state, wanted->middle, wanted->middle_size);
    seeded_more(&state, wanted->second.data, wanted->second.size);
    return seeded_end(&state);
}

int32_t own_keys_find(const own_keys *self, const key *wanted)
{
    if (self->count == 0)
        return ABSENT;
    uint32_t hash = hash_of(self, wanted);
    size_t last = self->slot_count - 1;
    for (size_t at = hash & last; self->slots[at] != ABSENT; at = (at + 1) & last) {
        const own_key *here = &self->keys[self->slots[at]];
        if (here->hash == hash && key_equals(wanted, self->bytes + here->offset, here->size))
            return (int32_t)(self->first + (uint32_t)self->slots[at]);
    }
    return ABSENT;
}

static void enter(own_keys *self, int32_t index)
{
    size_t last = self->slot_count - 1, at = self->keys[index].hash & last;
    while (self->slots[at] != ABSENT)
        at = (at + 1) & last;
    self->slots[at] = index;
}

static int grow_slots(own_keys *self, size_t count)
{
    int32_t *slots = malloc(count * sizeof *slots);
    if (slots == NULL)
        return -1;
    memset(slots, 0xFF, count * sizeof *slots); /* ABSENT everywhere */
    free(self->slots);
    self->slots = slots;
    self->slot_count = count;
    for (uint32_t index = 0; index < self->count; index++)
        enter(self, (int32_t)index);
    return 0;
}

int own_keys_reserve(own_keys *self, uint32_t size)
{
    if (self->first + self->count >= INT32_MAX - 1u)
        return -1;
    if (self->count == self->capacity) {
        uint32_t capacity = self->capacity ? 2 * self->capacity : FIRST_KEYS;
        own_key *keys = realloc(self->keys, capacity * sizeof *keys);
        if (keys == NULL)
            return -1;
        self->keys = keys;
        self->capacity = capacity;
    }
    if (self->byte_capacity - self->byte_count < size) {
        size_t capacity = 2 * self->byte_capacity + size + FIRST_BYTES;
        uint8_t *bytes = realloc(self->bytes, capacity);
        if (bytes == NULL)
            return -1;
        self->bytes = bytes;
        self->byte_capacity = capacity;
    }
    size_t needed = 2 * ((size_t)self->count + 1);
    return self->slot_count >= needed ? 0 : grow_slots(self, self->slot_count ? 2 * self->slot_count : 2 * FIRST_KEYS);
}

static int32_t add(own_keys *self, uint32_t size, uint32_t hash)
{
    self->keys[self->count] = (own_key){.offset = self->byte_count, .size = size, .hash = hash};
    self->byte_count += size;
    enter(self, (int32_t)self->count);
    return (int32_t)(self->first + self->count++);
}

int32_t own_keys_add(own_keys *self, const key *added)
{
    key_copy(added, self->bytes + self->byte_count);
    return add(self, added->size, hash_of(self, added));
}

int32_t own_keys_copy(own_keys *self, const own_keys *from, int32_t number)
{
    const own_key *copied = &from->keys[(uint32_t)number - from->first];
    memcpy(self->bytes + self->byte_count, from->bytes + copied->offset, copied->size);
    return add(self, copied->size, copied->hash);
}
