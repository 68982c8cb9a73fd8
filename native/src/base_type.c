/* aclog_native.Base: decisions over a flat base. */
#include "questions.h"

#define SELF(object) ((base_object *)(object))

static PyObject *base_new(PyTypeObject *type, PyObject *arguments, PyObject *keywords)
{
    PyObject *source;
    if (keywords != NULL && PyDict_Size(keywords) > 0) {
        PyErr_SetString(PyExc_TypeError, "Base() takes no keyword arguments");
        return NULL;
    }
    if (!PyArg_ParseTuple(arguments, "O:Base", &source))
        return NULL;
    base_object *self = SELF(PyType_GenericAlloc(type, 0));
    if (self == NULL)
        return NULL;
    const char *why;
    if (PyObject_GetBuffer(source, &self->buffer, PyBUF_SIMPLE) < 0) {
        Py_DECREF(self);
        return NULL;
    }
    if (flat_open(&self->columns, self->buffer.buf, (size_t)self->buffer.len, &why) < 0) {
        PyErr_Format(PyExc_ValueError, "no flat base that can be read: %s", why);
        Py_DECREF(self);
        return NULL;
    }
    return (PyObject *)self;
}

static void base_dealloc(PyObject *self)
{
    PyTypeObject *type = Py_TYPE(self);
    range_set_free(&SELF(self)->ranges);
    PyBuffer_Release(&SELF(self)->buffer); /* does nothing if none was taken */
    ((freefunc)PyType_GetSlot(type, Py_tp_free))(self);
    Py_DECREF(type);
}

const range_set *base_ranges(base_object *base)
{
    if (base->has_ranges)
        return &base->ranges;
    range_set read = {.seed = process_seed()};
    int status;
    Py_BEGIN_ALLOW_THREADS
    status = range_set_add_base(&read, &base->columns);
    Py_END_ALLOW_THREADS
    if (status == 0 && !base->has_ranges) {
        base->ranges = read;
        base->has_ranges = 1;
        return &base->ranges;
    }
    range_set_free(&read);
    if (base->has_ranges) /* another thread was faster */
        return &base->ranges;
    if (status == DAMAGED)
        raise_damaged();
    else
        PyErr_NoMemory();
    return NULL;
}

static PyObject *base_read_ranges(PyObject *self, PyObject *const *arguments, Py_ssize_t count)
{
    (void)arguments;
    if (count != 0) {
        PyErr_SetString(PyExc_TypeError, "read_ranges() takes no arguments");
        return NULL;
    }
    if (base_ranges(SELF(self)) == NULL)
        return NULL;
    Py_INCREF(Py_None);
    return Py_None;
}

static state state_of(PyObject *self)
{
    return (state){.base = SELF(self)};
}

static PyObject *base_mask(PyObject *self, PyObject *const *arguments, Py_ssize_t count)
{
    return ask_mask(state_of(self), arguments, count);
}

static PyObject *base_candidate(PyObject *self, PyObject *const *arguments, Py_ssize_t count)
{
    return ask_candidate(state_of(self), arguments, count);
}

static PyObject *base_rule(PyObject *self, PyObject *const *arguments, Py_ssize_t count)
{
    return ask_rule(state_of(self), arguments, count);
}

static PyObject *base_put(PyObject *self, PyObject *const *arguments, Py_ssize_t count)
{
    return changes_first(SELF(self), arguments, count);
}

static PyObject *base_session(PyObject *self, PyObject *const *arguments, Py_ssize_t count)
{
    return ask_session(self, state_of(self), arguments, count);
}

static PyObject *base_resource(PyObject *self, PyObject *const *arguments, Py_ssize_t count)
{
    if (count != 3)
        return raise_count("resource", 3, count);
    int64_t type;
    text name;
    int literal = PyObject_IsTrue(arguments[2]), taken = literal < 0 ? -1 : take_number(arguments[0], &type);
    if (taken > 0)
        taken = take_text(arguments[1], &name);
    if (taken <= 0 || type < 0 || type >= TYPES)
        return taken < 0 ? NULL : PyLong_FromLong(ASK_PYTHON);
    key wanted;
    resource_key(&wanted, (unsigned)type, name, (unsigned)literal);
    uint32_t hash = resource_hash(crc_more(CRC_START, name.data, name.size), (unsigned)type, (unsigned)literal);
    int32_t number = key_find(&SELF(self)->columns.resources, &wanted, hash);
    return number == DAMAGED ? raise_damaged() : PyLong_FromLong(number);
}

static PyMethodDef methods[] = {
    {"session", FUNCTION(base_session), SESSION_DOC},
    {"mask", FUNCTION(base_mask), MASK_DOC},
    {"has_candidate", FUNCTION(base_candidate), CANDIDATE_DOC},
    {"rule", FUNCTION(base_rule), RULE_DOC},
    {"put", FUNCTION(base_put), PUT_DOC},
    {"resource", FUNCTION(base_resource),
     PyDoc_STR("resource(resource_type, name, literal) -> int\n\nReturn the number of a resource pattern; -1: the base does not\n"
               "have it; -3: ask the Python path.")},
    {"read_ranges", FUNCTION(base_read_ranges),
     PyDoc_STR("read_ranges()\n\nRead the pairs whose host is a range, which the first question in ranges does otherwise.\n"
               "Runs without the GIL.")},
    {NULL, NULL, 0, NULL},
};

static PyType_Slot slots[] = {
    {Py_tp_doc, (void *)PyDoc_STR("Base(buffer)\n--\n\nDecisions over a flat base, whose buffer is kept and must not "
                                  "change. Raises ValueError if it cannot be read.")},
    {Py_tp_new, (void *)base_new},
    {Py_tp_dealloc, (void *)base_dealloc},
    {Py_tp_methods, methods},
    {0, NULL},
};

/* Not tracked by the garbage collector, as arrays of numpy are not: a buffer leads back to nothing. It must not be, since
   CPython before 3.13 crashes when it clears a memoryview whose memory is still used (gh-77894). */
PyType_Spec base_spec = {
    .name = "aclog_native.Base",
    .basicsize = sizeof(base_object),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_IMMUTABLETYPE,
    .slots = slots,
};
