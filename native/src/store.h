/* What changed since a base was built: cells by (resource, pair), each with its versions.

   All images of one base share a store: a change adds the next version of one cell, and an image reads what is at or
   below its own version. Nothing is copied for an update. */
#ifndef ACLOG_STORE_H
#define ACLOG_STORE_H

#include "flat.h"
#include "range_set.h"
#include "version_table.h"

typedef struct store store;

/* Returns an empty store at version 0; NULL without memory. `seed` is secret: nobody can pick names that collide. */
store *store_new(const flat *base, uint64_t seed);
void store_free(store *self);

/* The newest version; only it can be changed. */
uint32_t store_version(const store *self);

typedef struct {
    key resource, pair;
    uint32_t resource_hash, pair_hash;
    uint32_t mask; /* of all ACLs of the cell now, the base's included */
    int gone;      /* neither the base nor the changes have an ACL in the cell */
    int has_rules; /* whether the resource pattern has any ACL now */
} change;

/* Adds the next version. Returns 0, or DAMAGED, or ABSENT without memory; then nothing has changed. */
int store_put(store *self, const change *made);

/* A store with what is visible at a version, which is its newest; NULL without memory. */
store *store_fork(const store *self, uint32_t version);

/* Whether most of what the store holds is no longer visible at its newest version: then a fork of it is smaller. */
int store_is_stale(const store *self);

/* Numbers of keys that the base does not have, from the base's counts on; or ABSENT. */
int32_t store_resource(const store *self, const key *wanted);
int32_t store_pair(const store *self, const key *wanted);
/* The bytes of a pair that the base does not have. */
text store_pair_bytes(const store *self, int32_t number);
/* Those whose host is a range, whatever the version. */
const range_set *store_ranges(const store *self);
int32_t store_wildcard(const store *self, unsigned type);

/* The byte lengths of the prefixed names that only the changes have, ascending; UINT32_MAX after the last. */
uint32_t store_length(const store *self, unsigned type, size_t at);
/* Whether they may have a prefixed name with this hash (`resource_hash`). */
int store_may_have(const store *self, uint32_t hash);

/* The newest change of whether a resource has ACLs; NULL if no change touched it, at whatever version. */
const version_entry *store_touched(const store *self, int32_t resource);
/* Whether a touched resource has ACLs at a version: 1 or 0, or ABSENT if it was not touched by then. */
int store_has_rules(const store *self, const version_entry *touched, uint32_t version);
/* A cell as of a version; NULL if no change touched it by then. */
const version_entry *store_cell(const store *self, int32_t resource, int32_t pair, uint32_t version);

#endif
