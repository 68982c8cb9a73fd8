/* aclog_native.Changes: a base and what changed since, as of one version of a store that all of them share. */
#include "questions.h"

/* A store and how many objects use it. The interpreter's lock guards both: nothing here releases it. */
typedef struct {
    store *items;
    size_t users;
} shared_store;

typedef struct {
    PyObject_HEAD
    base_object *base;
    shared_store *shared;
    uint32_t version;
} changes_object;

#define SELF(object) ((changes_object *)(object))

static void shared_release(shared_store *shared)
{
    if (shared == NULL || --shared->users > 0)
        return;
    store_free(shared->items);
    PyMem_Free(shared);
}

/* Takes over a store, or NULL for want of memory. */
static shared_store *shared_new(store *items)
{
    shared_store *shared = items == NULL ? NULL : PyMem_Malloc(sizeof *shared);
    if (shared == NULL) {
        if (items != NULL)
            store_free(items);
        PyErr_NoMemory();
        return NULL;
    }
    *shared = (shared_store){.items = items, .users = 1};
    return shared;
}

/* Takes one user's part of `shared`, also on failure. */
static PyObject *changes_new(PyTypeObject *type, base_object *base, shared_store *shared)
{
    changes_object *self = SELF(PyType_GenericAlloc(type, 0));
    if (self == NULL) {
        shared_release(shared);
        return NULL;
    }
    self->base = base;
    Py_INCREF((PyObject *)base);
    self->shared = shared;
    self->version = store_version(shared->items);
    return (PyObject *)self;
}

static void changes_dealloc(PyObject *self)
{
    PyTypeObject *type = Py_TYPE(self);
    shared_release(SELF(self)->shared);
    Py_XDECREF((PyObject *)SELF(self)->base);
    ((freefunc)PyType_GetSlot(type, Py_tp_free))(self);
    Py_DECREF(type);
}

/* ---- put ---- */

static int raise_bounds(void)
{
    PyErr_SetString(PyExc_ValueError, "put(): expected a resource type 0..7, texts in UTF-8 below 1 GiB, a mask of 32 "
                                      "bits or -1, and a number of ACLs from 0 on");
    return -1;
}

static int take_change(change *made, PyObject *const *arguments, Py_ssize_t count)
{
    int64_t type, mask, rules;
    text name, principal, host;
    if (count != 7) {
        PyErr_Format(PyExc_TypeError, "put() takes 7 arguments, not %zd", count);
        return -1;
    }
    /* One at a time: a conversion may call Python code, which must not begin while an exception is set. */
    int literal, taken[] = {1, 1, 1, 1, 1, 1};
    if ((literal = PyObject_IsTrue(arguments[2])) < 0 || (taken[0] = take_number(arguments[0], &type)) < 0 ||
        (taken[1] = take_text(arguments[1], &name)) < 0 || (taken[2] = take_text(arguments[3], &principal)) < 0 ||
        (taken[3] = take_text(arguments[4], &host)) < 0 || (taken[4] = take_number(arguments[5], &mask)) < 0 ||
        (taken[5] = take_number(arguments[6], &rules)) < 0)
        return -1;
    for (size_t at = 0; at < sizeof taken / sizeof *taken; at++)
        if (taken[at] != 1)
            return raise_bounds();
    if (type < 0 || type >= TYPES || mask < -1 || mask > UINT32_MAX || rules < 0)
        return raise_bounds();
    uint32_t after_name = crc_more(CRC_START, name.data, name.size);
    resource_key(&made->resource, (unsigned)type, name, (unsigned)literal);
    made->resource_hash = resource_hash(after_name, (unsigned)type, (unsigned)literal);
    pair_key(&made->pair, principal, host);
    made->pair_hash = pair_key_hash(&made->pair, pair_key_begin(&made->pair));
    made->mask = mask < 0 ? 0 : (uint32_t)mask;
    made->gone = mask < 0;
    made->has_rules = rules > 0;
    return 0;
}

/* Takes one user's part of `shared`, also on failure. */
static PyObject *put(PyTypeObject *type, base_object *base, shared_store *shared, const change *made)
{
    int status = store_put(shared->items, made);
    if (status == 0)
        return changes_new(type, base, shared);
    shared_release(shared);
    return status == DAMAGED ? raise_damaged() : PyErr_NoMemory();
}

PyObject *changes_first(base_object *base, PyObject *const *arguments, Py_ssize_t count)
{
    change made;
    module_state *module = PyType_GetModuleState(Py_TYPE((PyObject *)base));
    if (module == NULL || take_change(&made, arguments, count) < 0)
        return NULL;
    shared_store *shared = shared_new(store_new(&base->columns, process_seed()));
    return shared == NULL ? NULL : put(module->changes_type, base, shared, &made);
}

static PyObject *changes_put(PyObject *self, PyObject *const *arguments, Py_ssize_t count)
{
    change made;
    if (take_change(&made, arguments, count) < 0)
        return NULL;
    shared_store *shared = SELF(self)->shared;
    /* Another image may have gone on from this version already. And a rule that is added and removed all day must not
       fill the memory: what nobody newer can see is left behind with the old images. */
    if (store_version(shared->items) != SELF(self)->version || store_is_stale(shared->items)) {
        shared = shared_new(store_fork(shared->items, SELF(self)->version));
        if (shared == NULL)
            return NULL;
    } else {
        shared->users++;
    }
    return put(Py_TYPE(self), SELF(self)->base, shared, &made);
}

/* ---- questions ---- */

static state state_of(PyObject *self)
{
    return (state){
        .base = SELF(self)->base, .changes = SELF(self)->shared->items, .version = SELF(self)->version};
}

static PyObject *changes_mask(PyObject *self, PyObject *const *arguments, Py_ssize_t count)
{
    return ask_mask(state_of(self), arguments, count);
}

static PyObject *changes_candidate(PyObject *self, PyObject *const *arguments, Py_ssize_t count)
{
    return ask_candidate(state_of(self), arguments, count);
}

static PyObject *changes_rule(PyObject *self, PyObject *const *arguments, Py_ssize_t count)
{
    return ask_rule(state_of(self), arguments, count);
}

static PyObject *changes_session(PyObject *self, PyObject *const *arguments, Py_ssize_t count)
{
    return ask_session(self, state_of(self), arguments, count);
}

static PyMethodDef methods[] = {
    {"session", FUNCTION(changes_session), SESSION_DOC},
    {"mask", FUNCTION(changes_mask), MASK_DOC},
    {"has_candidate", FUNCTION(changes_candidate), CANDIDATE_DOC},
    {"rule", FUNCTION(changes_rule), RULE_DOC},
    {"put", FUNCTION(changes_put), PUT_DOC},
    {NULL, NULL, 0, NULL},
};

static PyType_Slot slots[] = {
    {Py_tp_doc, (void *)PyDoc_STR("A base with changes, which `put` makes. Immutable: a further `put` returns another.")},
    {Py_tp_dealloc, (void *)changes_dealloc},
    {Py_tp_methods, methods},
    {0, NULL},
};

/* Not tracked by the garbage collector: it refers to a base only, and there may be one for every update. */
PyType_Spec changes_spec = {
    .name = "aclog_native.Changes",
    .basicsize = sizeof(changes_object),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_IMMUTABLETYPE | Py_TPFLAGS_DISALLOW_INSTANTIATION,
    .slots = slots,
};
