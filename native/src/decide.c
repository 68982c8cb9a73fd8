#include "decide.h"

#include "cells.h"

/* ---- mask ---- */

static int visit_mask(search *self, const level *levels, size_t count)
{
    const flat *base = self->base;
    for (size_t number = 0; number < count; number++) {
        const level *here = &levels[number];
        uint32_t cells[PAIRS];
        int touched = self->changes != NULL && store_touched(self->changes, here->resource) != NULL;
        if (touched && search_own_pairs(self) < 0)
            return ASK_PYTHON;
        for (uint32_t first = 0; first < self->pair_count; first += PAIRS) {
            const int32_t *pairs = self->pairs + first;
            cells_find(base, here->low, here->high, pairs, cells);
            for (size_t at = 0; at < PAIRS; at++) {
                const version_entry *changed = NULL;
                if (touched && pairs[at] != ABSENT)
                    changed = store_cell(self->changes, here->resource, pairs[at], self->version);
                if (changed != NULL)
                    self->mask |= changed->mask; /* in place of the base's: an ACL of it may have been removed */
                else if (cells[at] != NO_CELL)
                    self->mask |= load_u32(base->cell_masks, cells[at]);
            }
        }
    }
    return 0;
}

int decide_mask(search *self)
{
    self->visit = visit_mask;
    return search_levels(self);
}

/* ---- candidates ---- */

static int visit_candidate(search *self, const level *levels, size_t count)
{
    for (size_t number = 0; number < count; number++) {
        const level *here = &levels[number];
        int has_rules = ABSENT;
        const version_entry *touched = NULL;
        if (self->changes != NULL)
            touched = store_touched(self->changes, here->resource);
        if (touched != NULL)
            has_rules = store_has_rules(self->changes, touched, self->version);
        if (has_rules == 1 || (has_rules == ABSENT && here->low < here->high))
            return 1;
    }
    return 0;
}

int decide_candidate(search *self)
{
    self->visit = visit_candidate;
    return search_candidates(self);
}

/* ---- rule (aclog.authorizer.index.queries, kafka_scan_order, subject_rules) ---- */

enum { ALL = 2, READ, WRITE, DELETE = 6, ALTER, DESCRIBE, DESCRIBE_CONFIGS = 10, ALTER_CONFIGS }; /* AclOperation */
enum { ALLOW = 3 };                                                                              /* AclPermissionType */

/* Whether an ACL on one operation allows or denies another. Only ALLOW implies operations. */
static int covers(unsigned rule, unsigned asked, int allows)
{
    if (rule == ALL || rule == asked)
        return 1;
    if (!allows)
        return 0;
    if (asked == DESCRIBE)
        return rule == READ || rule == WRITE || rule == DELETE || rule == ALTER;
    return asked == DESCRIBE_CONFIGS && rule == ALTER_CONFIGS;
}

/* Whether String.compareTo puts one text before the other; one of them is ASCII, so bytes say the same. */
static int is_before(text left, text right)
{
    uint32_t shared = left.size < right.size ? left.size : right.size;
    int order = memcmp(left.data, right.data, shared);
    return order != 0 ? order < 0 : left.size < right.size;
}

/* The host of a pair. Those of ranges that are known here are ASCII. */
static text host_of(const search *self, uint32_t pair)
{
    if (pair < PAIRS)
        return pair == OWN || pair == EVERYBODY_HERE ? self->asked->host : WILDCARD;
    int32_t number = self->pairs[pair];
    text bytes, principal, host = WILDCARD;
    if (number >= (int64_t)self->base->pairs.count) {
        bytes = store_pair_bytes(self->changes, number);
    } else {
        size_t size;
        bytes.data = key_at(&self->base->pairs, (uint32_t)number, &size);
        bytes.size = (uint32_t)size;
    }
    if (bytes.data != NULL)
        key_split(bytes.data, bytes.size, &principal, &host);
    return host;
}

static int is_of_everybody(const search *self, uint32_t pair)
{
    return pair < PAIRS ? pair >= EVERYBODY_HERE : self->of_everybody >> pair & 1;
}

/* The order of the ACLs of two pairs on one name and operation: by principal, then by host. */
static int is_pair_before(const search *self, uint32_t left, uint32_t right)
{
    int is_everybody = is_of_everybody(self, left);
    if (is_everybody != is_of_everybody(self, right))
        return is_everybody == is_before(EVERYBODY, self->asked->principal);
    return is_before(host_of(self, left), host_of(self, right));
}

/* The order of Kafka's scan: longest names first, LITERAL `*` last; at one name LITERAL before PREFIXED, then by
   operation, then by pair. */
static uint64_t rank_of(const level *here, unsigned operation)
{
    uint64_t rank = here->wildcard ? (uint64_t)1 << 32 : UINT32_MAX - here->length;
    return rank << 5 | (uint64_t)here->prefixed << 4 | operation;
}

static int is_better(const search *self, const named *best, uint64_t rank, uint32_t pair, int allows)
{
    if (best->row == ABSENT)
        return 1;
    if (rank != best->rank)
        return allows ? rank > best->rank : rank < best->rank;
    return allows ? is_pair_before(self, best->pair, pair) : is_pair_before(self, pair, best->pair);
}

static void visit_row(search *self, const level *here, uint32_t row, uint32_t pair)
{
    unsigned operation = self->base->operations[row];
    int allows = self->base->permissions[row] == ALLOW;
    if (operation >= OPERATIONS)
        operation = 0; /* as Kafka reads it */
    if (!covers(operation, (unsigned)self->operation, allows))
        return;
    named *best = allows ? &self->allowing : &self->denying;
    /* The empty name comes before or after LITERAL `*`, depending on other ACLs; codes that Kafka does not know tie. */
    if (here->length == 0 || self->base->operations[row] >= OPERATIONS)
        best->odd = 1;
    uint64_t rank = rank_of(here, operation);
    if (is_better(self, best, rank, pair, allows)) {
        best->rank = rank;
        best->row = (int32_t)row;
        best->pair = pair;
    }
}

static int visit_cell(search *self, const level *here, uint32_t cell, uint32_t pair)
{
    const flat *base = self->base;
    uint32_t low = cell, high = cell + 1;
    if (base->cell_rows != NULL) {
        low = load_u32(base->cell_rows, cell);
        high = load_u32(base->cell_rows, (size_t)cell + 1);
    }
    if (low > high || high > base->rows)
        return DAMAGED;
    for (uint32_t row = low; row < high; row++)
        visit_row(self, here, row, pair);
    return 0;
}

static int visit_rules(search *self, const level *levels, size_t count)
{
    const flat *base = self->base;
    for (size_t number = 0; number < count; number++) {
        const level *here = &levels[number];
        uint32_t cells[PAIRS];
        int touched = self->changes != NULL && store_touched(self->changes, here->resource) != NULL;
        if (touched && search_own_pairs(self) < 0)
            return ASK_PYTHON;
        for (uint32_t first = 0; first < self->pair_count; first += PAIRS) {
            const int32_t *pairs = self->pairs + first;
            cells_find(base, here->low, here->high, pairs, cells);
            for (uint32_t at = 0; at < PAIRS; at++) {
                const version_entry *changed = NULL;
                if (touched && pairs[at] != ABSENT)
                    changed = store_cell(self->changes, here->resource, pairs[at], self->version);
                if (changed != NULL) {
                    /* Its rows are not known here, only what they add up to. */
                    self->denying.odd |= changed->mask >> (OPERATIONS + self->operation) & 1;
                    self->allowing.odd |= changed->mask >> self->operation & 1;
                } else if (cells[at] != NO_CELL && visit_cell(self, here, cells[at], first + at) < 0) {
                    return DAMAGED;
                }
            }
        }
    }
    return 0;
}

int32_t decide_rule(search *self)
{
    const request *asked = self->asked;
    if (self->base->odd)
        return ASK_PYTHON;
    self->denying = self->allowing = (named){.row = ABSENT};
    self->visit = visit_rules;
    int status = search_levels(self);
    if (status < 0)
        return status;
    if (self->denying.odd)
        return ASK_PYTHON;
    if (self->denying.row != ABSENT)
        return self->denying.row; /* the first visited, of all levels */
    if (self->allowing.row == ABSENT && !self->allowing.odd)
        return ABSENT;
    /* Below `*` the second section of the scan may visit names again. */
    if (self->allowing.odd || asked->name.size == 0 || asked->name.data[0] < '*')
        return ASK_PYTHON;
    return self->allowing.row; /* the last visited */
}
