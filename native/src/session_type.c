/* aclog_native.Session: the decisions of one client, of which Python hears only if it asked to. */
#include "questions.h"

#include "decide.h"

enum { ALLOWED_LOGGED = 1, DENIED_LOGGED = 4 }; /* outcomes (aclog.authorizer.audit) */

typedef struct {
    PyObject_HEAD
    PyObject *core; /* what `asked` is a part of */
    PyObject *principal, *host;
    state asked;
    request client; /* its texts belong to `principal` and `host` */
    bool plain;     /* the core decides about such a client */
    bool open;      /* what no ACL covers is allowed */
    Py_buffer counts;
} session_object;

#define SELF(object) ((session_object *)(object))

static void session_dealloc(PyObject *self)
{
    PyTypeObject *type = Py_TYPE(self);
    Py_XDECREF(SELF(self)->core);
    Py_XDECREF(SELF(self)->principal);
    Py_XDECREF(SELF(self)->host);
    PyBuffer_Release(&SELF(self)->counts);
    ((freefunc)PyType_GetSlot(type, Py_tp_free))(self);
    Py_DECREF(type);
}

PyObject *ask_session(PyObject *core, state asked, PyObject *const *arguments, Py_ssize_t count)
{
    if (count != 5)
        return raise_count("session", 5, count);
    module_state *module = PyType_GetModuleState(Py_TYPE(core));
    if (module == NULL)
        return NULL;
    request client = {.in_ranges = 0};
    int64_t semantics;
    int plain = take_subject(&client, arguments), open, known = 0;
    if (plain < 0 || (known = take_number(arguments[2], &semantics)) < 0 || (open = PyObject_IsTrue(arguments[3])) < 0)
        return NULL;
    session_object *self = SELF(PyType_GenericAlloc(module->session_type, 0));
    if (self == NULL)
        return NULL;
    if (PyObject_GetBuffer(arguments[4], &self->counts, PyBUF_WRITABLE) < 0) {
        Py_DECREF(self);
        return NULL;
    }
    if (self->counts.len != 16) {
        PyErr_SetString(PyExc_ValueError, "session(): expected two uint64 for the counts");
        Py_DECREF(self);
        return NULL;
    }
    self->plain = plain > 0 && known > 0;
    self->open = open != 0;
    self->asked = asked;
    self->client = client;
    if (self->plain)
        take_semantics(&self->client, semantics);
    Py_INCREF(core);
    self->core = core;
    Py_INCREF(arguments[0]);
    self->principal = arguments[0];
    Py_INCREF(arguments[1]);
    self->host = arguments[1];
    return (PyObject *)self;
}

static void add_one(const Py_buffer *counts, size_t index)
{
    uint64_t value = load_u64(counts->buf, index) + 1;
    memcpy((uint8_t *)counts->buf + 8 * index, &value, sizeof value);
}

static PyObject *of(PyObject *value)
{
    Py_INCREF(value);
    return value;
}

static PyObject *session_allows(PyObject *object, PyObject *const *arguments, Py_ssize_t count)
{
    if (count != 4)
        return raise_count("allows", 4, count);
    session_object *self = SELF(object);
    request wanted = self->client;
    int64_t operation, type, heard;
    int known = take_number(arguments[0], &operation), typed = 0, named = 0, hearing = 0;
    if (known < 0 || (typed = take_number(arguments[1], &type)) < 0 || (named = take_text(arguments[2], &wanted.name)) < 0 ||
        (hearing = take_number(arguments[3], &heard)) < 0)
        return NULL;
    if (!self->plain || !typed || type < 0 || type >= TYPES || !named || !hearing)
        return of(Py_None);
    wanted.type = (unsigned)type;
    search found;
    if (new_search(&found, self->asked, &wanted) < 0)
        return NULL;
    int status = decide_mask(&found);
    if (status == DAMAGED)
        return raise_damaged();
    if (status == ASK_PYTHON || (found.mask == 0 && self->open))
        return of(Py_None);
    if (!known || operation < 0 || operation >= OPERATIONS)
        operation = 0; /* UNKNOWN, to Kafka */
    bool allowed = (found.mask >> operation & 0x10001u) == 1;
    if (heard & (allowed ? ALLOWED_LOGGED : DENIED_LOGGED))
        return of(Py_None);
    add_one(&self->counts, !allowed);
    return of(allowed ? Py_True : Py_False);
}

static PyMethodDef methods[] = {
    {"allows", FUNCTION(session_allows),
     PyDoc_STR("allows(operation, resource_type, name, heard) -> bool\n\n"
               "Decide, and count the decision; None: ask the Python path, which counts it. So it is for each outcome\n"
               "in `heard` (1: allowed, 4: denied). Raises ValueError if the base is damaged.")},
    {NULL, NULL, 0, NULL},
};

static PyType_Slot slots[] = {
    {Py_tp_doc, (void *)PyDoc_STR("The decisions of one client, which `session` of a base or of changes makes.")},
    {Py_tp_dealloc, (void *)session_dealloc},
    {Py_tp_methods, methods},
    {0, NULL},
};

/* Not tracked by the garbage collector: it refers to a base, texts and an array. */
PyType_Spec session_spec = {
    .name = "aclog_native.Session",
    .basicsize = sizeof(session_object),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_IMMUTABLETYPE | Py_TPFLAGS_DISALLOW_INSTANTIATION,
    .slots = slots,
};
