/* The pairs whose host is a CIDR range (KIP-1276), by principal: an address is looked up once for each prefix length
   that a principal has (aclog.authorizer.acl and aclog.authorizer.index.layout are the reference). */
#ifndef ACLOG_RANGE_SET_H
#define ACLOG_RANGE_SET_H

#include "flat.h"

/* The bits of an address come first: of IPv4, the first 32 of `high`. */
typedef struct {
    uint64_t high, low;
    int is_ipv6;
} address;

/* Reads the host of a request: 1, or 0 if no range contains it, or ASK_PYTHON if its spelling is rare. */
int address_read(text host, address *found);

enum { IPV6_LENGTHS = 1, LENGTH_WORDS = 4 }; /* the words of a set of prefix lengths: IPv4 0..32, then IPv6 0..128 */

/* A principal that has ranges. */
typedef struct {
    uint64_t lengths[LENGTH_WORDS]; /* of its ranges */
    size_t name;                    /* where its bytes begin */
    uint32_t size;
    int has_odd; /* whether it has a host that may be an IPv6 range of a rare spelling, which Python reads */
} range_owner;

/* A pair, by its principal and range. */
typedef struct {
    address first;
    uint32_t owner, length;
    int32_t pair;
    int32_t next; /* another pair of the same principal and range, spelled otherwise; or ABSENT */
} range_pair;

typedef struct {
    uint32_t hash;
    int32_t index; /* ABSENT: empty */
} range_slot;

/* Open addressing. */
typedef struct {
    range_slot *slots;
    size_t count; /* a power of two, at least twice `used`; 0 before the first item */
    size_t used;
} range_table;

/* Grows, and nothing is taken from it: a pair that no ACL has any more has no cell. All zeros is a set without ranges. */
typedef struct {
    uint64_t seed; /* secret: nobody can pick principals or ranges that collide */
    range_owner *owners;
    size_t owner_count, owner_capacity;
    range_table owners_by_name;
    range_pair *pairs;
    size_t pair_count, pair_capacity;
    range_table pairs_by_range;
    uint8_t *bytes; /* of principals */
    size_t byte_count, byte_capacity;
    int32_t everybody; /* the owner User:*; read only if there are owners, ABSENT if it is none of them */
} range_set;

void range_set_free(range_set *self);

/* Makes room for a pair; -1 without memory. */
int range_set_reserve(range_set *self, text principal, text host);
/* Adds a pair after room was made; does nothing unless its host is a range. */
void range_set_add(range_set *self, text principal, text host, int32_t pair);
/* Adds the pairs of a base; 0, or DAMAGED, or ABSENT without memory. */
int range_set_add_base(range_set *self, const flat *base);

static inline int range_set_is_empty(const range_set *self)
{
    return self->owner_count == 0;
}

uint32_t range_set_hash(uint64_t seed, text principal);

/* Three steps that fetch what the look-ups below read, so that a caller can do other things between them. */
void range_set_fetch(const range_set *self, uint32_t hash);
void range_set_fetch_owner(const range_set *self, uint32_t hash);
void range_set_fetch_pairs(const range_set *self, uint32_t hash, const address *wanted);

/* The owner with this name, whose hash is given; or ABSENT. */
int32_t range_set_owner(const range_set *self, uint32_t hash, text principal);
/* Writes the pairs of an owner whose range contains the address; how many, or ASK_PYTHON if there are more than `most`
   or some are not known here. */
int range_set_containing(const range_set *self, int32_t owner, const address *wanted, int32_t *found, size_t most);

#endif
