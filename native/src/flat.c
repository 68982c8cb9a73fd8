#include "flat.h"

#include "layout.h"

static int power_of_two(uint64_t number)
{
    return number != 0 && (number & (number - 1)) == 0;
}

static unsigned shift_of(uint64_t count)
{
    unsigned bits = 0;
    while (count >> bits > 1)
        bits++;
    return 32 - bits;
}

/* ---- the header ---- */

typedef struct {
    const uint8_t *data;
    uint64_t size;
} column;

static const char *read_header(const uint8_t *data, size_t size, column *columns)
{
    if (size < HEADER_SIZE + COLUMNS * PLACE_SIZE)
        return "it is too short for a header";
    if (memcmp(data, MAGIC, sizeof MAGIC - 1) != 0)
        return "it does not begin with its magic";
    if (load_u32(data, 2) != LAYOUT || load_u32(data, 3) != COLUMNS)
        return "it has another version of the layout";
    if (load_u64(data, 2) != size)
        return "it has another size than its header says";
    for (size_t number = 0; number < COLUMNS; number++) {
        uint64_t offset = load_u64(data + HEADER_SIZE, 2 * number);
        uint64_t length = load_u64(data + HEADER_SIZE, 2 * number + 1);
        if (offset > size || length > size - offset)
            return "a column is out of bounds";
        columns[number] = (column){data + offset, length};
    }
    return NULL;
}

/* ---- the columns ---- */

static const char *open_keys(key_table *table, const column *columns, uint32_t count)
{
    const column *data = &columns[0], *offsets = &columns[1], *buckets = &columns[2];
    if (offsets->size == 8 * ((uint64_t)count + 1) && data->size > UINT32_MAX)
        return "its keys have 4 GiB or more";
    uint64_t starts = buckets->size / 4;
    if (offsets->size != 4 * ((uint64_t)count + 1) || buckets->size % 4 || starts < 2 || !power_of_two(starts - 1) ||
        starts - 1 > INT32_MAX)
        return "the columns of a key table do not fit together";
    *table = (key_table){
        .data = data->data,
        .data_size = data->size,
        .offsets = offsets->data,
        .buckets = buckets->data,
        .count = count,
        .shift = shift_of(starts - 1),
    };
    return NULL;
}

static const char *open_prefixes(flat *self, const column *columns)
{
    const column *types = &columns[TYPE_NODES], *lengths = &columns[PREFIX_LENGTHS], *filter = &columns[PREFIX_FILTER];
    uint64_t nodes = 4 * (uint64_t)self->nodes, heads = 4 * (TYPES + 1);
    if (columns[PREFIX_RESOURCES].size != nodes || columns[PREFIX_PARENTS].size != nodes ||
        columns[PREFIX_JUMPS].size != nodes || types->size != heads || lengths->size < heads || lengths->size % 4 ||
        filter->size % 8 || !power_of_two(filter->size / 8) || filter->size / 8 > 1u << 26)
        return "the columns of prefixes do not fit together";
    uint64_t items = lengths->size / 4 - (TYPES + 1);
    for (size_t type = 0; type <= TYPES; type++) {
        self->type_nodes[type] = load_i32(types->data, type);
        self->length_starts[type] = load_i32(lengths->data, type);
        int32_t node = type ? self->type_nodes[type - 1] : 0, length = type ? self->length_starts[type - 1] : 0;
        if (self->type_nodes[type] < node || (uint32_t)self->type_nodes[type] > self->nodes ||
            self->length_starts[type] < length || (uint64_t)self->length_starts[type] > items)
            return "the prefixes of a type are out of bounds";
    }
    self->prefix_resources = columns[PREFIX_RESOURCES].data;
    self->prefix_parents = columns[PREFIX_PARENTS].data;
    self->prefix_jumps = columns[PREFIX_JUMPS].data;
    self->lengths = lengths->data + heads;
    self->filter = filter->data;
    self->filter_shift = shift_of(filter->size * 8);
    return NULL;
}

static const char *open_cells(flat *self, const column *columns, int one_row_each)
{
    uint64_t cells = self->cells, rows = columns[CELL_ROWS].size;
    if (columns[CELL_STARTS].size != 4 * ((uint64_t)self->resources.count + 1) ||
        columns[CELL_PAIRS].size != 4 * cells || columns[CELL_MASKS].size != 4 * cells ||
        rows != (one_row_each ? 0 : 4 * (cells + 1)) || (one_row_each && self->cells != self->rows) ||
        columns[OPERATION_CODES].size != self->rows || columns[PERMISSION_CODES].size != self->rows)
        return "the columns of cells and rows do not fit together";
    self->cell_starts = columns[CELL_STARTS].data;
    self->cell_pairs = columns[CELL_PAIRS].data;
    self->cell_masks = columns[CELL_MASKS].data;
    self->cell_rows = one_row_each ? NULL : columns[CELL_ROWS].data;
    self->operations = columns[OPERATION_CODES].data;
    self->permissions = columns[PERMISSION_CODES].data;
    return NULL;
}

static const char *open_ranges(flat *self, const column *pairs)
{
    if (pairs->size % 4 || pairs->size / 4 > self->pairs.count)
        return "column RANGE_PAIRS has the wrong size";
    self->range_pairs = pairs->data;
    self->range_count = pairs->size / 4;
    return NULL;
}

static const char *open_wildcards(flat *self, const column *columns)
{
    if (columns[WILDCARDS].size != 4 * TYPES)
        return "column WILDCARDS has the wrong size";
    for (size_t type = 0; type < TYPES; type++) {
        self->wildcards[type] = load_i32(columns[WILDCARDS].data, type);
        if (self->wildcards[type] < ABSENT || self->wildcards[type] >= (int64_t)self->resources.count)
            return "a LITERAL `*` is out of bounds";
    }
    key everybody;
    pair_key(&everybody, EVERYBODY, WILDCARD);
    self->after_everybody = pair_key_begin(&everybody);
    self->everybody = key_find(&self->pairs, &everybody, pair_key_hash(&everybody, self->after_everybody));
    return self->everybody == DAMAGED ? "a pair key is out of bounds" : NULL;
}

int flat_open(flat *self, const uint8_t *data, size_t size, const char **why)
{
    column columns[COLUMNS];
    *why = read_header(data, size, columns);
    if (*why != NULL)
        return -1;
    uint64_t counts[COUNT_ITEMS];
    *why = "its counts are out of bounds";
    if (columns[COUNTS].size != sizeof counts)
        return -1;
    memcpy(counts, columns[COUNTS].data, sizeof counts);
    for (int number = COUNT_ROWS; number <= COUNT_NODES; number++)
        if (counts[number] >= INT32_MAX)
            return -1;
    *self = (flat){
        .rows = (uint32_t)counts[COUNT_ROWS],
        .cells = (uint32_t)counts[COUNT_CELLS],
        .nodes = (uint32_t)counts[COUNT_NODES],
        .odd = counts[COUNT_IRREGULAR] != 0 || columns[RAW_CODES].size != 0,
    };
    *why = open_keys(&self->resources, &columns[RESOURCE_DATA], (uint32_t)counts[COUNT_RESOURCES]);
    if (*why == NULL)
        *why = open_keys(&self->pairs, &columns[PAIR_DATA], (uint32_t)counts[COUNT_PAIRS]);
    if (*why == NULL)
        *why = open_cells(self, columns, (counts[COUNT_FLAGS] & ONE_ROW_EACH) != 0);
    if (*why == NULL)
        *why = open_prefixes(self, columns);
    if (*why == NULL)
        *why = open_ranges(self, &columns[RANGE_PAIRS]);
    if (*why == NULL)
        *why = open_wildcards(self, columns);
    return *why == NULL ? 0 : -1;
}
