/* The types of the module. */
#ifndef ACLOG_TYPES_H
#define ACLOG_TYPES_H

#include "python.h"

#include "range_set.h"

typedef struct {
    PyObject_HEAD
    flat columns;
    Py_buffer buffer; /* kept as long as the base */
    range_set ranges; /* read when it is asked for the first time */
    int has_ranges;
} base_object;

extern PyType_Spec base_spec, changes_spec, session_spec, maker_spec;

/* An exception that says that a base is wrong though it could be opened; returns NULL. */
PyObject *raise_damaged(void);

/* Returns the pairs of a base whose host is a range, reading them once; NULL with an exception. */
const range_set *base_ranges(base_object *base);

/* Returns the base after a first change, given the arguments of `put`. */
PyObject *changes_first(base_object *base, PyObject *const *arguments, Py_ssize_t count);

#endif
