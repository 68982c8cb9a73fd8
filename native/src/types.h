/* The types of the module. */
#ifndef ACLOG_TYPES_H
#define ACLOG_TYPES_H

#include "python.h"

#include "flat.h"

typedef struct {
    PyObject_HEAD
    flat columns;
    Py_buffer buffer; /* kept as long as the base */
} base_object;

extern PyType_Spec base_spec, changes_spec;

/* An exception that says that a base is wrong though it could be opened; returns NULL. */
PyObject *raise_damaged(void);

/* Returns the base after a first change, given the arguments of `put`. */
PyObject *changes_first(base_object *base, PyObject *const *arguments, Py_ssize_t count);

#endif
