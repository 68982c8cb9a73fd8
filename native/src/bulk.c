/* What building a base does to every key of a million: without the interpreter's lock, and without an object each. */
#include "slices.h"

#include "hash.h"

#include <stdlib.h>

/* ---- number: dictionary encoding ---- */

typedef struct {
    uint32_t hash;
    int32_t row; /* where the value appears first, -1 for an empty slot */
    int32_t number;
} slot;

/* A hash for this process only. `seed` is secret, as Python's own is, so that nobody can pick names that collide. */
static uint32_t seeded_hash(uint64_t seed, const uint8_t *data, size_t size)
{
    uint64_t state = seed ^ (size * 0x9E3779B97F4A7C15u);
    for (; size >= 8; data += 8, size -= 8) {
        state = (state ^ load_u64(data, 0)) * 0xFF51AFD7ED558CCDu;
        state ^= state >> 32;
    }
    uint64_t rest = 0;
    if (size)
        memcpy(&rest, data, size);
    state = (state ^ rest ^ seed >> 17) * 0xC4CEB9FE1A85EC53u;
    state ^= state >> 29;
    state *= 0x9E3779B97F4A7C15u;
    return (uint32_t)(state >> 32);
}

static uint64_t process_seed(void)
{
    PyObject *fixed = PyUnicode_FromString("aclog_native");
    if (fixed == NULL)
        return 0;
    Py_hash_t hash = PyObject_Hash(fixed);
    Py_DECREF(fixed);
    return (uint64_t)hash * 0x9E3779B97F4A7C15u;
}

/* Rows whose slots are fetched ahead: every look-up in a table of a million misses the caches. */
#define AHEAD 16

static void hash_ahead(const slices *rows, uint64_t seed, const slot *slots, size_t mask, size_t first, uint32_t *hashes)
{
    size_t last = first + AHEAD < rows->count ? first + AHEAD : rows->count;
    for (size_t row = first; row < last; row++) {
        hashes[row % AHEAD] = seeded_hash(seed, slice_data(rows, row), slice_size(rows, row));
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
    if (PyErr_Occurred() || slices_take(&rows, arguments, count, "number") < 0)
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

/* ---- crc32 ---- */

PyObject *bulk_crc32(PyObject *module, PyObject *const *arguments, Py_ssize_t count)
{
    (void)module;
    slices rows;
    if (slices_take(&rows, arguments, count, "crc32") < 0)
        return NULL;
    PyObject *sums = PyBytes_FromStringAndSize(NULL, (Py_ssize_t)(4 * rows.count));
    if (sums != NULL) {
        uint32_t *into = (uint32_t *)(void *)PyBytes_AsString(sums);
        Py_BEGIN_ALLOW_THREADS
        for (size_t row = 0; row < rows.count; row++)
            into[row] = ~crc_more(CRC_START, slice_data(&rows, row), slice_size(&rows, row));
        Py_END_ALLOW_THREADS
    }
    slices_release(&rows);
    return sums;
}

/* ---- order: a stable sort by bytes ---- */

typedef struct {
    uint64_t head; /* eight bytes after those that all share, as a big-endian number; zeros after the end */
    int32_t row;
} ranked;

static int compare(const slices *rows, const ranked *left, const ranked *right)
{
    if (left->head != right->head)
        return left->head < right->head ? -1 : 1;
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

static uint64_t head_of(const slices *rows, size_t row, size_t shared)
{
    const uint8_t *data = slice_data(rows, row) + shared;
    size_t size = slice_size(rows, row) - shared;
    uint64_t head = 0;
    for (size_t at = 0; at < 8; at++)
        head = head << 8 | (at < size ? data[at] : 0);
    return head;
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
            memory[row] = (ranked){.head = head_of(&rows, row, shared), .row = (int32_t)row};
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

/* ---- cut: slices copied one after another ---- */

PyObject *bulk_cut(PyObject *module, PyObject *const *arguments, Py_ssize_t count)
{
    (void)module;
    slices rows;
    if (slices_take(&rows, arguments, count, "cut") < 0)
        return NULL;
    uint64_t total = 0;
    for (size_t row = 0; row < rows.count; row++) {
        total += slice_size(&rows, row);
        if (total > PY_SSIZE_T_MAX)
            break;
    }
    PyObject *copy = total > PY_SSIZE_T_MAX ? PyErr_NoMemory() : PyBytes_FromStringAndSize(NULL, (Py_ssize_t)total);
    if (copy != NULL) {
        char *into = PyBytes_AsString(copy);
        Py_BEGIN_ALLOW_THREADS
        for (size_t row = 0; row < rows.count; row++) {
            size_t size = slice_size(&rows, row);
            memcpy(into, slice_data(&rows, row), size);
            into += size;
        }
        Py_END_ALLOW_THREADS
    }
    slices_release(&rows);
    return copy;
}

/* ---- walk: the records of a batch ---- */

/* Reads a zigzag varint of up to 32 bits in its shortest form; returns how many bytes it has, 0 if it is malformed. */
static size_t read_varint(const uint8_t *data, size_t size, int64_t *value)
{
    uint64_t read = 0;
    for (size_t at = 0; at < 5 && at < size; at++) {
        read |= (uint64_t)(data[at] & 0x7F) << 7 * at;
        if (data[at] < 0x80) {
            if ((at > 0 && data[at] == 0) || read > UINT32_MAX)
                return 0;
            *value = (int64_t)(read >> 1) ^ -(int64_t)(read & 1);
            return at + 1;
        }
    }
    return 0;
}

static int64_t walk(const uint8_t *data, size_t size, size_t at, size_t count, int64_t *starts, size_t *found)
{
    for (size_t row = 0; row < count; row++) {
        int64_t length;
        size_t head;
        if (at >= size || (head = read_varint(data + at, size - at, &length)) == 0)
            return -1;
        starts[(*found)++] = (int64_t)at;
        at += head + (length > 0 ? (size_t)length : 0);
    }
    return (int64_t)at;
}

PyObject *bulk_walk(PyObject *module, PyObject *const *arguments, Py_ssize_t count)
{
    (void)module;
    if (count != 3)
        return PyErr_Format(PyExc_TypeError, "walk takes 3 arguments, not %zd", count);
    Py_ssize_t at = PyLong_AsSsize_t(arguments[1]), rows = PyLong_AsSsize_t(arguments[2]);
    if (PyErr_Occurred())
        return NULL;
    Py_buffer data;
    if (PyObject_GetBuffer(arguments[0], &data, PyBUF_SIMPLE) < 0)
        return NULL;
    /* A record has at least one byte: more of them than bytes are left cannot be there. */
    PyObject *starts = NULL, *result = NULL;
    if (at < 0 || rows < 0 || at > data.len || rows > data.len - at)
        result = Py_BuildValue("(y#i)", "", (Py_ssize_t)0, -1);
    else if ((starts = PyBytes_FromStringAndSize(NULL, 8 * rows)) != NULL) {
        int64_t *into = (int64_t *)(void *)PyBytes_AsString(starts), end;
        size_t found = 0;
        Py_BEGIN_ALLOW_THREADS
        end = walk(data.buf, (size_t)data.len, (size_t)at, (size_t)rows, into, &found);
        Py_END_ALLOW_THREADS
        if ((Py_ssize_t)found < rows)
            result = Py_BuildValue("(y#L)", (const char *)into, (Py_ssize_t)(8 * found), (long long)end);
        else
            result = Py_BuildValue("(OL)", starts, (long long)end);
    }
    Py_XDECREF(starts);
    PyBuffer_Release(&data);
    return result;
}
