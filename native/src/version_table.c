#include "version_table.h"

#include "grow.h"

enum { FIRST_SLOTS = 32 };

void version_table_free(version_table *self)
{
    free(self->slots);
    free(self->entries);
}

static version_slot *slot_of(version_slot *slots, size_t count, uint64_t key)
{
    uint64_t hash = key * 0x9E3779B97F4A7C15u;
    size_t at = (hash ^ hash >> 32) & (count - 1);
    while (slots[at].newest != ABSENT && slots[at].key != key)
        at = (at + 1) & (count - 1);
    return &slots[at];
}

static int grow_slots(version_table *self)
{
    size_t count = self->slot_count ? 2 * self->slot_count : FIRST_SLOTS;
    version_slot *slots = malloc(count * sizeof *slots);
    if (slots == NULL)
        return -1;
    memset(slots, 0xFF, count * sizeof *slots); /* ABSENT everywhere */
    for (size_t at = 0; at < self->slot_count; at++)
        if (self->slots[at].newest != ABSENT)
            *slot_of(slots, count, self->slots[at].key) = self->slots[at];
    free(self->slots);
    self->slots = slots;
    self->slot_count = count;
    return 0;
}

int version_table_reserve(version_table *self)
{
    if (self->count >= INT32_MAX - 1)
        return -1;
    if (grow((void **)&self->entries, &self->capacity, self->count, sizeof *self->entries) < 0)
        return -1;
    return 2 * (self->key_count + 1) <= self->slot_count ? 0 : grow_slots(self);
}

void version_table_add(version_table *self, uint64_t key, version_entry added)
{
    version_slot *slot = slot_of(self->slots, self->slot_count, key);
    self->key_count += slot->newest == ABSENT;
    added.older = slot->newest;
    self->entries[self->count] = added;
    *slot = (version_slot){.key = key, .newest = (int32_t)self->count++};
}

const version_entry *version_table_newest(const version_table *self, uint64_t key)
{
    if (self->slot_count == 0)
        return NULL;
    const version_slot *slot = slot_of(self->slots, self->slot_count, key);
    return slot->newest == ABSENT ? NULL : &self->entries[slot->newest];
}

const version_entry *version_table_at(const version_table *self, const version_entry *newest, uint32_t version)
{
    while (newest != NULL && newest->version > version)
        newest = newest->older == ABSENT ? NULL : &self->entries[newest->older];
    return newest;
}
