/* One request against a base and its changes: which pairs match the subject, and which resource patterns the name. */
#ifndef ACLOG_SEARCH_H
#define ACLOG_SEARCH_H

#include "flat.h"
#include "store.h"

/* The four (principal, host) texts of ACLs that match a subject (aclog.authorizer.index.subjects.matching_pairs). */
enum { OWN, OWN_ANYWHERE, EVERYBODY_HERE, EVERYBODY_ANYWHERE, PAIRS };
/* After them come pairs whose host is a range that contains the address. Pairs are taken PAIRS at a time. */
enum { MOST_PAIRS = 8 * PAIRS };

typedef struct {
    text principal, host; /* not read by `search_candidates` */
    text name;
    unsigned type; /* 0..7 */
    int documented; /* LITERAL `*` covers names that begin with `*`, too */
    int in_ranges;  /* the host of an ACL may be a range */
} request;

/* A resource pattern that covers the name. */
typedef struct {
    int32_t resource;   /* from base->resources.count on: one that only the changes have */
    uint32_t low, high; /* its cells in the base */
    uint32_t length;    /* of its name, in bytes */
    uint8_t prefixed;
    uint8_t wildcard; /* LITERAL `*`, and the name is another one */
} level;

typedef struct search search;

/* The first row, or the last, that was visited of those that deny, or allow. */
typedef struct {
    uint64_t rank;
    int32_t row; /* ABSENT: none yet */
    uint32_t pair; /* an index of `pairs` */
    int odd;     /* the rank does not tell the order of all of them */
} named;

/* Takes some of the levels, in no particular order; returns 0 to be given more. */
typedef int (*visitor)(search *self, const level *levels, size_t count);

struct search {
    const flat *base;
    const store *changes; /* or NULL */
    uint32_t version;     /* of the changes */
    const request *asked;
    visitor visit;
    const range_set *ranges; /* of the base; NULL: hosts are texts, or there are none */
    uint64_t seed;           /* of all sets of ranges */
    int host_status;         /* what address_read said of the host */
    address address;           /* if there is one */
    uint32_t principal_hash;   /* likewise */
    int32_t pairs[MOST_PAIRS]; /* numbers, from base->pairs.count on: those of the changes; or ABSENT */
    uint32_t pair_count;       /* a multiple of PAIRS */
    uint32_t of_everybody;     /* a bit for each pair of a range whose principal is User:* */
    int own_pairs_found;       /* whether the changes were asked for pairs that the base does not have */
    uint32_t mask;
    int operation;
    named denying, allowing;
};

/* Resolves the subject and visits every resource pattern that covers the name; 0, or what the visitor returned, or
   DAMAGED, or ASK_PYTHON. */
int search_levels(search *self);

/* The same without a subject. */
int search_candidates(search *self);

/* Finds those pairs that only the changes have; called once some touched resource covers the name. Returns 0 or
   ASK_PYTHON. */
int search_own_pairs(search *self);

#endif
