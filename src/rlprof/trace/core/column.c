/* Growing arrays. realloc moves the pages of large arrays without copying, so a column never needs twice its size. */
#include "scan.h"

#include <string.h>

int
column_add(Column *column, const void *item, size_t size)
{
    if (size == 0) {
        return 0;
    }
    if (column->used + size > column->size) {
        size_t wanted = column->size + column->size / 2 + 4096 + size;
        char *data = PyMem_RawRealloc(column->data, wanted);
        if (data == NULL) {
            return -1;
        }
        column->data = data;
        column->size = wanted;
    }
    memcpy(column->data + column->used, item, size);
    column->used += size;
    return 0;
}

void
column_free(Column *column)
{
    PyMem_RawFree(column->data);
    *column = (Column){0};
}

typedef struct {
    PyObject_HEAD
    Column column;
} Given;

static PyTypeObject *Given_Type;

PyObject *
column_give(Column *column)
{
    Given *given = (Given *)Given_Type->tp_alloc(Given_Type, 0);
    if (given != NULL) {
        given->column = *column;
        *column = (Column){0};
    }
    return (PyObject *)given;
}

static int
given_buffer(PyObject *self, Py_buffer *view, int flags)
{
    static char nothing[1];
    Column *column = &((Given *)self)->column;
    return PyBuffer_FillInfo(view, self, column->data ? column->data : nothing, (Py_ssize_t)column->used, 0, flags);
}

static void
given_dealloc(PyObject *self)
{
    PyTypeObject *type = Py_TYPE(self);
    column_free(&((Given *)self)->column);
    type->tp_free(self);
    Py_DECREF(type);
}

static PyType_Slot given_slots[] = {
    {Py_bf_getbuffer, given_buffer},
    {Py_tp_dealloc, given_dealloc},
    {0, NULL},
};
static PyType_Spec given_spec = {
    .name = "rlprof.trace._scan.Column",
    .basicsize = sizeof(Given),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION,
    .slots = given_slots,
};

int
column_setup(PyObject *module)
{
    Given_Type = (PyTypeObject *)PyType_FromModuleAndSpec(module, &given_spec, NULL);
    return Given_Type == NULL ? -1 : 0;
}
