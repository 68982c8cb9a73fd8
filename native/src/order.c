/* order: a stable sort of a million keys by their bytes. */
#include "slices.h"

#include <stdlib.h>

typedef struct {
    uint64_t head, next; /* eight bytes each after those that all share, as big-endian numbers; zeros after the end */
    int32_t row;
} ranked;

static int compare(const slices *rows, const ranked *left, const ranked *right)
{
    if (left->head != right->head)
        return left->head < right->head ? -1 : 1;
    if (left->next != right->next) /* names often begin with one of a few words */
        return left->next < right->next ? -1 : 1;
    size_t left_size = slice_size(rows, (size_t)left->row), right_size = slice_size(rows, (size_t)right->row);
    size_t shared = left_size < right_size ? left_size : right_size;
    int order = memcmp(slice_data(rows, (size_t)left->row), slice_data(rows, (size_t)right->row), shared);
    if (order != 0)
        return order;
    return left_size == right_size ? 0 : left_size < right_size ? -1 : 1;
}

/* How many bytes all slices begin with: names of one kind often share a stem, which would make all heads equal. */
static size_t shared_by_all(const slices *rows)
{
    size_t shared = rows->count ? slice_size(rows, 0) : 0;
    for (size_t row = 1; row < rows->count && shared; row++) {
        size_t size = slice_size(rows, row), at = 0;
        if (size < shared)
            shared = size;
        while (at < shared && slice_data(rows, row)[at] == slice_data(rows, 0)[at])
            at++;
        shared = at;
    }
    return shared;
}

static uint64_t eight_from(const slices *rows, size_t row, size_t begin)
{
    const uint8_t *data = slice_data(rows, row);
    size_t size = slice_size(rows, row);
    uint64_t number = 0;
    for (size_t at = begin; at < begin + 8; at++)
        number = number << 8 | (at < size ? data[at] : 0);
    return number;
}

static void merge(const slices *rows, const ranked *from, ranked *into, size_t low, size_t middle, size_t high)
{
    size_t left = low, right = middle;
    for (size_t at = low; at < high; at++)
        if (right >= high || (left < middle && compare(rows, &from[left], &from[right]) <= 0))
            into[at] = from[left++];
        else
            into[at] = from[right++];
}

/* Merge sort, bottom up: n log n comparisons on any input, no recursion. Returns the sorted one of the two arrays. */
static ranked *sorted(const slices *rows, ranked *from, ranked *into)
{
    size_t count = rows->count;
    for (size_t width = 1; width < count; width *= 2) {
        for (size_t low = 0; low < count; low += 2 * width) {
            size_t middle = low + width < count ? low + width : count;
            size_t high = middle + width < count ? middle + width : count;
            merge(rows, from, into, low, middle, high);
        }
        ranked *other = from;
        from = into;
        into = other;
    }
    return from;
}

PyObject *bulk_order(PyObject *module, PyObject *const *arguments, Py_ssize_t count)
{
    (void)module;
    slices rows;
    if (slices_take(&rows, arguments, count, "order") < 0)
        return NULL;
    PyObject *order = PyBytes_FromStringAndSize(NULL, (Py_ssize_t)(4 * rows.count));
    ranked *memory = malloc(2 * rows.count * sizeof *memory + 1);
    if (order != NULL && memory != NULL) {
        int32_t *into = (int32_t *)(void *)PyBytes_AsString(order);
        Py_BEGIN_ALLOW_THREADS
        size_t shared = shared_by_all(&rows);
        for (size_t row = 0; row < rows.count; row++)
            memory[row] = (ranked){
                .head = eight_from(&rows, row, shared),
                .next = eight_from(&rows, row, shared + 8),
                .row = (int32_t)row,
            };
        const ranked *result = sorted(&rows, memory, memory + rows.count);
        for (size_t row = 0; row < rows.count; row++)
            into[row] = result[row].row;
        Py_END_ALLOW_THREADS
    } else {
        Py_CLEAR(order);
        PyErr_NoMemory();
    }
    free(memory);
    slices_release(&rows);
    return order;
}
