/* number: dictionary encoding of a million keys. */
#include "slices.h"

#include "seeded.h"

#include <stdlib.h>

typedef struct {
    uint32_t hash;
    int32_t row; /* where the value appears first, -1 for an empty slot */
    int32_t number;
} slot;

/* Rows whose slots are fetched ahead: every look-up in a table of a million misses the caches. */
#define AHEAD 16

static void hash_ahead(const slices *rows, uint64_t seed, const slot *slots, size_t mask, size_t first, uint32_t *hashes)
{
    size_t last = first + AHEAD < rows->count ? first + AHEAD : rows->count;
    for (size_t row = first; row < last; row++) {
        seeded state = seeded_begin(seed);
        seeded_more(&state, slice_data(rows, row), slice_size(rows, row));
        hashes[row % AHEAD] = seeded_end(&state);
        PREFETCH(&slots[hashes[row % AHEAD] & mask]);
    }
}

/* Fills `numbers` (by row) and `firsts` (by number); returns how many distinct values there are, -1 without memory. */
static int64_t number_rows(const slices *rows, uint64_t seed, int32_t *numbers, int32_t *firsts)
{
    size_t capacity = 16;
    while (capacity < 2 * rows->count)
        capacity *= 2;
    slot *slots = malloc(capacity * sizeof *slots);
    if (slots == NULL)
        return -1;
    memset(slots, 0xFF, capacity * sizeof *slots);
    int32_t distinct = 0;
    uint32_t hashes[AHEAD];
    for (size_t row = 0; row < rows->count; row++) {
        if (row % AHEAD == 0)
            hash_ahead(rows, seed, slots, capacity - 1, row, hashes);
        const uint8_t *data = slice_data(rows, row);
        size_t size = slice_size(rows, row);
        uint32_t hash = hashes[row % AHEAD];
        slot *at = &slots[hash & (capacity - 1)];
        while (at->row >= 0 && (at->hash != hash || slice_size(rows, (size_t)at->row) != size ||
                                memcmp(slice_data(rows, (size_t)at->row), data, size) != 0))
            at = at + 1 == slots + capacity ? slots : at + 1;
        if (at->row < 0) {
            firsts[distinct] = (int32_t)row;
            *at = (slot){.hash = hash, .row = (int32_t)row, .number = distinct++};
        }
        numbers[row] = at->number;
    }
    free(slots);
    return distinct;
}

PyObject *bulk_number(PyObject *module, PyObject *const *arguments, Py_ssize_t count)
{
    (void)module;
    slices rows;
    uint64_t seed = process_seed();
    if (slices_take(&rows, arguments, count, "number") < 0)
        return NULL;
    PyObject *numbers = PyBytes_FromStringAndSize(NULL, (Py_ssize_t)(4 * rows.count));
    int32_t *firsts = malloc(4 * rows.count + 4);
    int64_t distinct = -1;
    if (numbers != NULL && firsts != NULL) {
        int32_t *into = (int32_t *)(void *)PyBytes_AsString(numbers);
        Py_BEGIN_ALLOW_THREADS
        distinct = number_rows(&rows, seed, into, firsts);
        Py_END_ALLOW_THREADS
    }
    slices_release(&rows);
    PyObject *result = NULL;
    if (distinct >= 0)
        result = Py_BuildValue("(Oy#)", numbers, (const char *)firsts, (Py_ssize_t)(4 * distinct));
    else if (!PyErr_Occurred())
        PyErr_NoMemory();
    free(firsts);
    Py_XDECREF(numbers);
    return result;
}
