/* The columns of a flat base (aclog.authorizer.index.layout; docs/format.md tells their items). */
#ifndef ACLOG_FLAT_H
#define ACLOG_FLAT_H

#include "keys.h"

enum { TYPES = 8, OPERATIONS = 16 };

typedef struct {
    key_table resources, pairs;
    uint32_t rows, cells, nodes;
    const uint8_t *cell_starts, *cell_pairs, *cell_masks;
    const uint8_t *cell_rows; /* NULL: a cell is the row of the same number */
    const uint8_t *operations, *permissions;
    const uint8_t *prefix_resources, *prefix_parents, *prefix_jumps;
    int32_t type_nodes[TYPES + 1];
    const uint8_t *lengths; /* the byte lengths of the prefixed names of a type, ascending, are */
    int32_t length_starts[TYPES + 1]; /* those from length_starts[type] to length_starts[type + 1] - 1 */
    const uint8_t *filter;
    unsigned filter_shift;
    const uint8_t *range_pairs; /* the pairs whose host may be a range */
    size_t range_count;
    int32_t wildcards[TYPES]; /* LITERAL `*`, or ABSENT */
    int32_t everybody;        /* the pair (User:*, *), or ABSENT */
    uint32_t after_everybody; /* the state of the CRC of a pair key after the principal User:* */
    int odd;                  /* some ACL has codes that only a record can carry */
} flat;

/* Opens the base in a buffer; on failure returns -1 and says why. Every column's bounds are checked here, its items when
   they are used. */
int flat_open(flat *self, const uint8_t *data, size_t size, const char **why);

/* The cells [low, high) of a resource; DAMAGED if they are not cells. */
static inline int flat_cells(const flat *self, int32_t resource, uint32_t *low, uint32_t *high)
{
    *low = load_u32(self->cell_starts, (size_t)resource);
    *high = load_u32(self->cell_starts, (size_t)resource + 1);
    return *low <= *high && *high <= self->cells ? 0 : DAMAGED;
}

/* Whether the filter may have a prefixed name with this hash. Both bits are always read: one branch that is hardly ever
   taken is cheaper than two of which the first is a toss-up. */
static inline int flat_may_have(const flat *self, uint32_t hash)
{
    uint32_t first = (uint32_t)((uint64_t)hash >> self->filter_shift);
    uint32_t second = (uint32_t)((uint64_t)(uint32_t)(hash * SECOND_BIT) >> self->filter_shift);
    return load_u64(self->filter, first >> 6) >> (first & 63) & load_u64(self->filter, second >> 6) >> (second & 63) & 1;
}

#endif
