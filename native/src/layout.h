/* The header of a flat base, and the numbers of its columns (aclog.authorizer.index.layout is the reference). */
#ifndef ACLOG_LAYOUT_H
#define ACLOG_LAYOUT_H

#define LAYOUT 1 /* the version that is read */
#define MAGIC "aclogbas"

enum { HEADER_SIZE = 24, PLACE_SIZE = 16 };

enum {
    COUNTS,
    RESOURCE_DATA,
    RESOURCE_OFFSETS,
    RESOURCE_BUCKETS,
    PAIR_DATA,
    PAIR_OFFSETS,
    PAIR_BUCKETS,
    CELL_STARTS,
    CELL_PAIRS,
    CELL_MASKS,
    CELL_ROWS,
    OPERATION_CODES,
    PERMISSION_CODES,
    IDS,
    ID_ORDER,
    ID_STARTS,
    PREFIX_RESOURCES,
    PREFIX_PARENTS,
    PREFIX_JUMPS,
    TYPE_NODES,
    PREFIX_LENGTHS,
    PREFIX_FILTER,
    WILDCARDS,
    UNITS,
    COLONLESS,
    RANGE_PAIRS,
    RAW_CODES,
    TAGS,
    COLUMNS
};

enum {
    COUNT_ROWS,
    COUNT_RESOURCES,
    COUNT_PAIRS,
    COUNT_CELLS,
    COUNT_NODES,
    COUNT_FLAGS,
    COUNT_UNBINDABLE,
    COUNT_IRREGULAR,
    COUNT_ITEMS
};

enum { ONE_ROW_EACH = 2 }; /* a flag: column CELL_ROWS is left out */

#endif
