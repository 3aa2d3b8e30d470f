/* The replacement of asyncio's Handle._run, which reports to a ledger when an event loop begins and ends a callback.
 *
 * Every callback of every task goes through it. In Python it took longer than the callback. */
#include "core.h"

#include <stddef.h>
#include <structmember.h>

typedef struct {
    PyObject_HEAD
    vectorcallfunc vectorcall;
    Ledger *ledger;
    PyObject *run; /* the original */
} Follower;

static PyTypeObject *Follower_Type;

static PyObject *
follower_call(PyObject *self, PyObject *const *args, size_t nargsf, PyObject *kwnames)
{
    Follower *follower = (Follower *)self;
    Ledger *ledger = follower->ledger;
    if (!(ledger->mode & MODE_ENABLED) || PyVectorcall_NARGS(nargsf) == 0) {
        return PyObject_Vectorcall(follower->run, args, nargsf, kwnames);
    }
    uint32_t life = ledger->lanes_life; /* a forked child has other lanes */
    Lane *previous = lane_step(ledger, args[0]);
    PyObject *result = PyObject_Vectorcall(follower->run, args, nargsf, kwnames);
    if (ledger->mode & MODE_ENABLED) {
        lane_step_end(ledger, life == ledger->lanes_life ? previous : NULL);
    }
    return result;
}

/* follow(run): a method that replaces `run`. */
PyObject *
ledger_follow(Ledger *ledger, PyObject *run)
{
    Follower *follower = PyObject_GC_New(Follower, Follower_Type);
    if (follower != NULL) {
        follower->vectorcall = follower_call;
        follower->ledger = (Ledger *)Py_NewRef(ledger);
        follower->run = Py_NewRef(run);
        PyObject_GC_Track(follower);
    }
    return (PyObject *)follower;
}

static PyObject *
follower_get(PyObject *self, PyObject *instance, PyObject *Py_UNUSED(owner))
{
    return instance == NULL || instance == Py_None ? Py_NewRef(self) : PyMethod_New(self, instance);
}

static int
follower_traverse(Follower *follower, visitproc visit, void *arg)
{
    Py_VISIT(Py_TYPE(follower));
    Py_VISIT(follower->ledger);
    Py_VISIT(follower->run);
    return 0;
}

static void
follower_dealloc(Follower *follower)
{
    PyTypeObject *type = Py_TYPE(follower);
    PyObject_GC_UnTrack(follower);
    Py_DECREF(follower->ledger);
    Py_DECREF(follower->run);
    type->tp_free(follower);
    Py_DECREF(type);
}

static PyMemberDef follower_members[] = {
    {"__vectorcalloffset__", T_PYSSIZET, offsetof(Follower, vectorcall), READONLY, NULL},
    {"__wrapped__", T_OBJECT, offsetof(Follower, run), READONLY, NULL},
    {NULL, 0, 0, 0, NULL},
};

static PyType_Slot follower_slots[] = {
    {Py_tp_call, PyVectorcall_Call},
    {Py_tp_descr_get, follower_get},
    {Py_tp_traverse, follower_traverse},
    {Py_tp_dealloc, follower_dealloc},
    {Py_tp_members, follower_members},
    {0, NULL},
};
static PyType_Spec follower_spec = {
    .name = "rlprof.ledger._core.Follower",
    .basicsize = sizeof(Follower),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_HAVE_VECTORCALL | Py_TPFLAGS_METHOD_DESCRIPTOR |
             Py_TPFLAGS_DISALLOW_INSTANTIATION,
    .slots = follower_slots,
};

int
steps_setup(PyObject *module)
{
    Follower_Type = (PyTypeObject *)PyType_FromModuleAndSpec(module, &follower_spec, NULL);
    return Follower_Type == NULL ? -1 : 0;
}
