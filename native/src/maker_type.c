/* aclog_native.Maker: makes instances of a class with slots, such as a frozen one of attrs, without its constructor. */
#include "types.h"

typedef struct {
    PyObject_HEAD
    PyTypeObject *made;
    Py_ssize_t count;
    PyObject **slots; /* member descriptors, each of which checks the type of what it writes to */
    descrsetfunc set;
} maker_object;

#define SELF(object) ((maker_object *)(object))

static void maker_dealloc(PyObject *self)
{
    PyTypeObject *type = Py_TYPE(self);
    for (Py_ssize_t at = 0; at < SELF(self)->count; at++)
        Py_DECREF(SELF(self)->slots[at]);
    PyMem_Free(SELF(self)->slots);
    Py_XDECREF((PyObject *)SELF(self)->made);
    ((freefunc)PyType_GetSlot(type, Py_tp_free))(self);
    Py_DECREF(type);
}

static int take_slots(maker_object *self, PyObject *names)
{
    Py_ssize_t count = PyTuple_Size(names);
    self->slots = PyMem_Malloc((size_t)(count + 1) * sizeof *self->slots);
    if (self->slots == NULL) {
        PyErr_NoMemory();
        return -1;
    }
    while (self->count < count) {
        PyObject *slot = PyObject_GetAttr((PyObject *)self->made, PyTuple_GetItem(names, self->count));
        if (slot == NULL)
            return -1;
        if (Py_TYPE(slot) != &PyMemberDescr_Type) {
            Py_DECREF(slot);
            PyErr_SetString(PyExc_TypeError, "Maker(): expected names of slots");
            return -1;
        }
        self->slots[self->count++] = slot;
    }
    return 0;
}

static PyObject *maker_new(PyTypeObject *type, PyObject *arguments, PyObject *keywords)
{
    PyObject *made, *names;
    if (keywords != NULL && PyDict_Size(keywords) > 0) {
        PyErr_SetString(PyExc_TypeError, "Maker() takes no keyword arguments");
        return NULL;
    }
    if (!PyArg_ParseTuple(arguments, "O!O!:Maker", &PyType_Type, &made, &PyTuple_Type, &names))
        return NULL;
    PyTypeObject *class = (PyTypeObject *)made;
    /* What an instance needs besides its slots is unknown of any other kind. */
    if (!(PyType_GetFlags(class) & Py_TPFLAGS_HEAPTYPE) ||
        PyType_GetSlot(class, Py_tp_new) != PyType_GetSlot(&PyBaseObject_Type, Py_tp_new)) {
        PyErr_SetString(PyExc_TypeError, "Maker(): expected a class that is written in Python, without __new__");
        return NULL;
    }
    maker_object *self = SELF(PyType_GenericAlloc(type, 0));
    if (self == NULL)
        return NULL;
    self->made = class;
    Py_INCREF(made);
    self->set = (descrsetfunc)PyType_GetSlot(&PyMemberDescr_Type, Py_tp_descr_set);
    if (take_slots(self, names) < 0) {
        Py_DECREF(self);
        return NULL;
    }
    return (PyObject *)self;
}

static PyObject *maker_make(PyObject *self, PyObject *const *arguments, Py_ssize_t count)
{
    const maker_object *maker = SELF(self);
    if (count != maker->count)
        return PyErr_Format(PyExc_TypeError, "make() takes %zd arguments, not %zd", maker->count, count);
    PyObject *made = PyType_GenericAlloc(maker->made, 0);
    if (made == NULL)
        return NULL;
    for (Py_ssize_t at = 0; at < count; at++)
        if (maker->set(maker->slots[at], made, arguments[at]) < 0) {
            Py_DECREF(made);
            return NULL;
        }
    return made;
}

static PyMethodDef methods[] = {
    {"make", FUNCTION(maker_make), PyDoc_STR("make(*values) -> object\n\nReturn an instance with these values.")},
    {NULL, NULL, 0, NULL},
};

static PyType_Slot slots[] = {
    {Py_tp_doc, (void *)PyDoc_STR("Maker(type, names)\n--\n\nMakes instances of a class from the values of its slots, in the "
                                  "order of these names. No code of the class runs.")},
    {Py_tp_new, (void *)maker_new},
    {Py_tp_dealloc, (void *)maker_dealloc},
    {Py_tp_methods, methods},
    {0, NULL},
};

/* Not tracked by the garbage collector: a maker lives as long as its class. */
PyType_Spec maker_spec = {
    .name = "aclog_native.Maker",
    .basicsize = sizeof(maker_object),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_IMMUTABLETYPE,
    .slots = slots,
};
