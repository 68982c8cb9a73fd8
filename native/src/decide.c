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
        if (touched)
            search_own_pairs(self);
        cells_find(base, here->low, here->high, self->pairs, cells);
        for (size_t at = 0; at < PAIRS; at++) {
            const version_entry *changed = NULL;
            if (touched && self->pairs[at] != ABSENT)
                changed = store_cell(self->changes, here->resource, self->pairs[at], self->version);
            if (changed != NULL)
                self->mask |= changed->mask; /* in place of the base's: an ACL of it may have been removed */
            else if (cells[at] != NO_CELL)
                self->mask |= load_u32(base->cell_masks, cells[at]);
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

/* ---- rule (aclog.authorizer.index.rules, kafka_scan_order, subject_rules) ---- */

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

/* The order of Kafka's scan: longest names first, LITERAL `*` last; at one name LITERAL before PREFIXED, then by
   operation, principal and host. */
static uint64_t rank_of(const search *self, const level *here, unsigned operation, size_t pair)
{
    uint64_t rank = here->wildcard ? (uint64_t)1 << 32 : UINT32_MAX - here->length;
    return rank << 8 | (uint64_t)here->prefixed << 7 | operation << 3 | self->ranks[pair];
}

static int visit_row(search *self, const level *here, uint32_t row, size_t pair)
{
    unsigned operation = self->base->operations[row];
    int allows = self->base->permissions[row] == ALLOW;
    if (operation >= OPERATIONS)
        operation = 0; /* as Kafka reads it */
    if (!covers(operation, (unsigned)self->operation, allows))
        return 0;
    named *best = allows ? &self->allowing : &self->denying;
    /* The empty name comes before or after LITERAL `*`, depending on other ACLs; codes that Kafka does not know tie. */
    if (here->length == 0 || self->base->operations[row] >= OPERATIONS)
        best->odd = 1;
    uint64_t rank = rank_of(self, here, operation, pair);
    if (best->row == ABSENT || (allows ? rank > best->rank : rank < best->rank)) {
        best->rank = rank;
        best->row = (int32_t)row;
    }
    return 0;
}

static int visit_cell(search *self, const level *here, uint32_t cell, size_t pair)
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
        if (touched)
            search_own_pairs(self);
        cells_find(base, here->low, here->high, self->pairs, cells);
        for (size_t at = 0; at < PAIRS; at++) {
            const version_entry *changed = NULL;
            if (touched && self->pairs[at] != ABSENT)
                changed = store_cell(self->changes, here->resource, self->pairs[at], self->version);
            if (changed != NULL) {
                /* Its rows are not known here, only what they add up to. */
                self->denying.odd |= changed->mask >> (OPERATIONS + self->operation) & 1;
                self->allowing.odd |= changed->mask >> self->operation & 1;
            } else if (cells[at] != NO_CELL && visit_cell(self, here, cells[at], at) < 0) {
                return DAMAGED;
            }
        }
    }
    return 0;
}

/* Whether String.compareTo puts one text before the other; one of them is ASCII, so bytes say the same. */
static int is_before(text left, text right)
{
    uint32_t shared = left.size < right.size ? left.size : right.size;
    int order = memcmp(left.data, right.data, shared);
    return order != 0 ? order < 0 : left.size < right.size;
}

int32_t decide_rule(search *self)
{
    const request *asked = self->asked;
    if (self->base->odd)
        return ASK_PYTHON;
    uint8_t principal = is_before(EVERYBODY, asked->principal) ? 0 : 2, host = is_before(WILDCARD, asked->host) ? 0 : 1;
    self->ranks[OWN] = (uint8_t)((2 - principal) | (1 - host));
    self->ranks[OWN_ANYWHERE] = (uint8_t)((2 - principal) | host);
    self->ranks[EVERYBODY_HERE] = (uint8_t)(principal | (1 - host));
    self->ranks[EVERYBODY_ANYWHERE] = (uint8_t)(principal | host);
    self->denying = self->allowing = (named){.row = ABSENT};
    self->visit = visit_rules;
    if (search_levels(self) < 0)
        return DAMAGED;
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
