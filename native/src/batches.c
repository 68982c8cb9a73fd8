/* batches and values: a metadata log's record batches and the values in them (aclog.metalog.batches). */
#include "python.h"

#include "crc32c.h"
#include "grow.h"
#include "varint.h"

#define HEADER 61u    /* the bytes before the first record */
#define LENGTH_END 12 /* where the field of the length ends: the length counts what follows */
#define CRC_FROM 21u  /* the first byte that the checksum covers */
#define LEAST_RECORD 8

static uint64_t big(const uint8_t *data, size_t size)
{
    uint64_t value = 0;
    for (size_t at = 0; at < size; at++)
        value = value << 8 | data[at];
    return value;
}

typedef struct {
    int64_t base;
    int64_t size; /* with base offset and length */
    int64_t count;
    int32_t epoch;
    uint32_t crc;
    int64_t max_timestamp;
    bool control, valid;
} header;

/* What batches.read_header reads and checks. */
static header read_header(const uint8_t *data)
{
    int16_t attributes = (int16_t)big(data + 21, 2);
    int32_t last = (int32_t)big(data + 23, 4), count = (int32_t)big(data + 57, 4);
    header read = {
        .base = (int64_t)big(data, 8),
        .size = (int64_t)(int32_t)big(data + 8, 4) + LENGTH_END,
        .count = count,
        .epoch = (int32_t)big(data + 12, 4),
        .crc = (uint32_t)big(data + 17, 4),
        .max_timestamp = (int64_t)big(data + 35, 8),
        .control = attributes == 0x20,
    };
    read.valid = data[16] == 2 && read.size >= (int64_t)HEADER && (attributes & ~0x20) == 0 && count >= 1 &&
                 last == count - 1 && read.base >= 0 && read.epoch >= 0 && read.base <= INT64_MAX - last;
    return read;
}

enum { POSITION, END, BASE, EPOCH, TIMESTAMP, COUNT, CONTROL, COLUMNS };

typedef struct {
    int64_t (*items)[COLUMNS];
    size_t count, room;
} rows;

static bool add_row(rows *self, const header *read, size_t at)
{
    if (grow((void **)&self->items, &self->room, self->count, sizeof *self->items) < 0)
        return false;
    int64_t *row = self->items[self->count++];
    row[POSITION] = (int64_t)at;
    row[END] = (int64_t)at + read->size;
    row[BASE] = read->base;
    row[EPOCH] = read->epoch;
    row[TIMESTAMP] = read->max_timestamp;
    row[COUNT] = read->count;
    row[CONTROL] = read->control;
    return true;
}

/* Collects the whole batches from `at` on, up to the first damaged one; false if memory is short. Without `sums`, no
 * checksum counts. Each header is read once: what others write into a shared buffer meanwhile cannot move a batch that
 * has been checked. */
static bool check_batches(const uint8_t *data, size_t size, size_t at, bool sums, rows *whole, int64_t *damage)
{
    *damage = -1;
    while (at <= size && size - at >= HEADER) {
        header read = read_header(data + at);
        if (read.valid && (uint64_t)read.size > size - at)
            return true; /* truncated by the end of the buffer, which is no damage */
        if (!read.valid || (sums && crc32c(0, data + at + CRC_FROM, (size_t)read.size - CRC_FROM) != read.crc)) {
            *damage = (int64_t)at;
            return true;
        }
        if (!add_row(whole, &read, at))
            return false;
        at += (size_t)read.size;
    }
    return true;
}

static PyObject *columns_of(const rows *whole)
{
    PyObject *columns = PyBytes_FromStringAndSize(NULL, (Py_ssize_t)(whole->count * sizeof *whole->items));
    if (columns == NULL)
        return NULL;
    int64_t *into = (int64_t *)(void *)PyBytes_AsString(columns);
    for (size_t column = 0; column < COLUMNS; column++)
        for (size_t row = 0; row < whole->count; row++)
            *into++ = whole->items[row][column];
    return columns;
}

PyObject *bulk_batches(PyObject *module, PyObject *const *arguments, Py_ssize_t count)
{
    (void)module;
    if (count != 3)
        return PyErr_Format(PyExc_TypeError, "batches takes 3 arguments, not %zd", count);
    Py_ssize_t at = PyLong_AsSsize_t(arguments[1]);
    if (at == -1 && PyErr_Occurred())
        return NULL;
    if (at < 0)
        return PyErr_Format(PyExc_ValueError, "batches(): position %zd: expected 0 or more", at);
    int sums = PyObject_IsTrue(arguments[2]);
    if (sums < 0)
        return NULL;
    Py_buffer data;
    if (PyObject_GetBuffer(arguments[0], &data, PyBUF_SIMPLE) < 0)
        return NULL;
    rows whole = {NULL, 0, 0};
    int64_t damage;
    bool enough;
    Py_BEGIN_ALLOW_THREADS
    enough = check_batches(data.buf, (size_t)data.len, (size_t)at, sums != 0, &whole, &damage);
    Py_END_ALLOW_THREADS
    PyObject *result = NULL, *columns = enough ? columns_of(&whole) : PyErr_NoMemory();
    if (columns != NULL) {
        result = Py_BuildValue("(OL)", columns, (long long)damage);
        Py_DECREF(columns);
    }
    free(whole.items);
    PyBuffer_Release(&data);
    return result;
}

PyObject *bulk_crc32c(PyObject *module, PyObject *const *arguments, Py_ssize_t count)
{
    (void)module;
    if (count != 2)
        return PyErr_Format(PyExc_TypeError, "crc32c takes 2 arguments, not %zd", count);
    unsigned long before = PyLong_AsUnsignedLong(arguments[1]);
    if (before == (unsigned long)-1 && PyErr_Occurred())
        return NULL;
    if (before > UINT32_MAX)
        return PyErr_Format(PyExc_ValueError, "crc32c(): %lu: expected 32 bits", before);
    Py_buffer data;
    if (PyObject_GetBuffer(arguments[0], &data, PyBUF_SIMPLE) < 0)
        return NULL;
    uint32_t sum;
    if (data.len < 1 << 16) /* giving up the lock takes longer */
        sum = crc32c((uint32_t)before, data.buf, (size_t)data.len);
    else {
        Py_BEGIN_ALLOW_THREADS
        sum = crc32c((uint32_t)before, data.buf, (size_t)data.len);
        Py_END_ALLOW_THREADS
    }
    PyBuffer_Release(&data);
    return PyLong_FromUnsignedLong(sum);
}

/* ---- values ---- */

/* Reads the plain record at `at` (batches.read_record); returns where it ends, 0 if it is not plain or not valid. */
static size_t plain_record(const uint8_t *data, size_t end, size_t at, uint64_t delta, int64_t *from, int64_t *to)
{
    uint64_t length, offset, size;
    size_t head = read_unsigned(data + at, end - at, &length);
    if (head == 0 || length & 1)
        return 0;
    at += head;
    length >>= 1;
    if (length < 2 || length > end - at)
        return 0;
    size_t stop = at + (size_t)length;
    if (data[at + 1] != 0) /* the timestamp's delta; attributes, before it, may be anything */
        return 0;
    at += 2;
    head = read_unsigned(data + at, stop - at, &offset);
    if (head == 0 || offset != delta << 1)
        return 0;
    at += head;
    if (at >= stop || data[at] != 1) /* no key */
        return 0;
    at++;
    head = read_unsigned(data + at, stop - at, &size);
    if (head == 0 || size & 1 || size == 0)
        return 0;
    at += head;
    size >>= 1;
    if (size + 1 != stop - at || data[stop - 1] != 0) /* the value, and no headers */
        return 0;
    *from = (int64_t)at;
    *to = (int64_t)stop - 1;
    return stop;
}

/* Fills the values of one batch; returns whether all of its records are plain and end where it does. */
static bool batch_values(const uint8_t *data, size_t at, size_t end, size_t count, int64_t *starts, int64_t *ends)
{
    for (size_t row = 0; row < count; row++)
        if (at >= end || (at = plain_record(data, end, at, row, starts + row, ends + row)) == 0)
            return false;
    return at == end;
}

/* Room for the values of all batches, so that a wrong count cannot make it too large; -1 if a batch is out of place. */
static int64_t room(const Py_buffer *data, const uint8_t *at, const uint8_t *ends, const uint8_t *counts, size_t rows,
                    size_t *sane)
{
    uint64_t total = 0, size = (uint64_t)data->len;
    for (*sane = 0; *sane < rows; ++*sane) {
        uint64_t from = load_u64(at, *sane), to = load_u64(ends, *sane), count = load_u64(counts, *sane);
        if (from > to || to > size)
            return -1;
        if (count > (to - from) / LEAST_RECORD)
            break;
        total += count;
        if (total > (uint64_t)PY_SSIZE_T_MAX / 16)
            return -1;
    }
    return (int64_t)total;
}

static PyObject *read_values(const Py_buffer *data, const Py_buffer *columns)
{
    size_t rows = (size_t)columns[0].len / 8, sane, row, filled = 0;
    const uint8_t *at = columns[0].buf, *ends = columns[1].buf, *counts = columns[2].buf;
    int64_t total = room(data, at, ends, counts, rows, &sane);
    if (total < 0)
        return PyErr_Format(PyExc_ValueError, "values(): a batch does not lie in the buffer of %zd bytes", data->len);
    int64_t *starts = malloc(16 * (size_t)total + 16), *stops = starts + total;
    if (starts == NULL)
        return PyErr_NoMemory();
    Py_BEGIN_ALLOW_THREADS
    for (row = 0; row < sane; row++) {
        uint64_t from = load_u64(at, row), to = load_u64(ends, row), count = load_u64(counts, row);
        /* Checked again: the columns may be shared as well. */
        if (from > to || to > (uint64_t)data->len || count > (uint64_t)total - filled ||
            !batch_values(data->buf, (size_t)from, (size_t)to, (size_t)count, starts + filled, stops + filled))
            break;
        filled += count;
    }
    Py_END_ALLOW_THREADS
    PyObject *result = Py_BuildValue("(y#y#n)", (const char *)starts, (Py_ssize_t)(8 * filled), (const char *)stops,
                                     (Py_ssize_t)(8 * filled), (Py_ssize_t)row);
    free(starts);
    return result;
}

PyObject *bulk_values(PyObject *module, PyObject *const *arguments, Py_ssize_t count)
{
    (void)module;
    if (count != 4)
        return PyErr_Format(PyExc_TypeError, "values takes 4 arguments, not %zd", count);
    Py_buffer buffers[4];
    memset(buffers, 0, sizeof buffers);
    PyObject *result = NULL;
    int taken = 0;
    while (taken < 4 && PyObject_GetBuffer(arguments[taken], buffers + taken, PyBUF_SIMPLE) == 0)
        taken++;
    if (taken == 4) {
        Py_ssize_t size = buffers[1].len;
        if (size % 8 || size != buffers[2].len || size != buffers[3].len)
            PyErr_SetString(PyExc_ValueError, "values(): expected starts, ends and counts of as many int64 each");
        else
            result = read_values(buffers, buffers + 1);
    }
    while (taken-- > 0)
        PyBuffer_Release(buffers + taken);
    return result;
}
