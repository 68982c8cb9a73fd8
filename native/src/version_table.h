/* A hash table whose values have versions: each is the newest of a chain. */
#ifndef ACLOG_VERSION_TABLE_H
#define ACLOG_VERSION_TABLE_H

#include "plain.h"

typedef struct {
    uint32_t version;
    int32_t older; /* the version before, or ABSENT */
    uint32_t mask; /* of a cell: that of all its ACLs, the base's included */
    int32_t flag;  /* of a cell: nothing is left of it; of a resource: it has ACLs */
} version_entry;

typedef struct {
    uint64_t key;
    int32_t newest; /* ABSENT: an empty slot */
} version_slot;

typedef struct {
    version_slot *slots;
    size_t slot_count, key_count;
    version_entry *entries;
    size_t count, capacity;
} version_table;

void version_table_free(version_table *self);
/* Makes room for one more entry and one more key; -1 without memory. */
int version_table_reserve(version_table *self);
/* Adds the newest version of a key, after room was made; `added->older` is set. */
void version_table_add(version_table *self, uint64_t key, version_entry added);
/* The newest entry of a key at any version, or at or below one; NULL if there is none. */
const version_entry *version_table_newest(const version_table *self, uint64_t key);
const version_entry *version_table_at(const version_table *self, const version_entry *newest, uint32_t version);

#endif
