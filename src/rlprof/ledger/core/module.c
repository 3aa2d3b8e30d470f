/* The extension module rlprof.ledger._core. */
#include "loop.h"

#include <unistd.h>

static PyObject *
tsc_refusal(PyObject *Py_UNUSED(module), PyObject *Py_UNUSED(ignored))
{
    const char *reason = clock_tsc_refusal();
    if (reason == NULL) {
        Py_RETURN_NONE;
    }
    return PyUnicode_FromString(reason);
}

static PyObject *
tsc_rate(PyObject *Py_UNUSED(module), PyObject *Py_UNUSED(ignored))
{
    char text[RATE_TEXT];
    return PyUnicode_FromString(clock_rate(text) ? text : "");
}

static PyObject *
bucket(PyObject *Py_UNUSED(module), PyObject *ns)
{
    long long value = PyLong_AsLongLong(ns);
    if (value == -1 && PyErr_Occurred()) {
        return NULL;
    }
    return PyLong_FromLong(histogram_bucket(value));
}

/* Reads a file without releasing the interpreter's lock. Files of /proc answer at once. Taking the lock back, as
 * os.pread must, takes far longer than that while the training computes. */
static PyObject *
read_held(PyObject *Py_UNUSED(module), PyObject *arguments)
{
    char buffer[4096];
    int file;
    Py_ssize_t size;
    if (!PyArg_ParseTuple(arguments, "in", &file, &size)) {
        return NULL;
    }
    if (size < 0) {
        return PyErr_Format(PyExc_ValueError, "read_held() takes a size of 0 or more, not %zd", size);
    }
    ssize_t got = pread(file, buffer, size < (Py_ssize_t)sizeof buffer ? (size_t)size : sizeof buffer, 0);
    return got < 0 ? PyErr_SetFromErrno(PyExc_OSError) : PyBytes_FromStringAndSize(buffer, got);
}

static PyMethodDef functions[] = {
    {"read_held", read_held, METH_VARARGS, PyDoc_STR("The start of an open file, up to 4 KiB.")},
    {"exit_follow", exit_follow, METH_NOARGS, PyDoc_STR("Note the code of the SystemExit that ends the program.")},
    {"exit_code", exit_code, METH_NOARGS, PyDoc_STR("That code, or the text that Python prints; None if there is none.")},
    {"signal_follow", signal_follow, METH_O, PyDoc_STR("Note when this signal, which Python handles, arrives.")},
    {"signal_seen", signal_seen, METH_O, PyDoc_STR("The signal's handler runs.")},
    {"signal_unseen", signal_unseen, METH_O, PyDoc_STR("True if the signal has arrived and its handler has not run.")},
    {"tsc_refusal", tsc_refusal, METH_NOARGS, PyDoc_STR("Why the TSC is not used here, or None.")},
    {"tsc_rate", tsc_rate, METH_NOARGS, PyDoc_STR("Value of RLPROF_TSC for child processes; empty: none.")},
    {"bucket", bucket, METH_O, PyDoc_STR("The histogram bucket of a duration in ns.")},
    {NULL, NULL, 0, NULL},
};

/* The process has one set of types and per-thread pointers, so only one interpreter can use them. In any other, rlprof
 * uses the Python twin. */
static int
setup(PyObject *module)
{
    static PyInterpreterState *owner;
    if (owner != NULL && owner != PyInterpreterState_Get()) {
        PyErr_SetString(PyExc_ImportError, "rlprof's C core serves one interpreter per process");
        return -1;
    }
    owner = PyInterpreterState_Get();
    histogram_init_cells();
    return layout_setup(module) < 0 || span_setup(module) < 0 || loop_setup(module) < 0 || timed_setup(module) < 0 ||
                   ledger_setup(module) < 0 || steps_setup(module) < 0
               ? -1
               : 0;
}

static PyModuleDef_Slot slots[] = {
    {Py_mod_exec, setup},
#if PY_VERSION_HEX >= 0x030C0000
    {Py_mod_multiple_interpreters, Py_MOD_MULTIPLE_INTERPRETERS_NOT_SUPPORTED},
#endif
    {0, NULL},
};

static struct PyModuleDef definition = {
    PyModuleDef_HEAD_INIT,
    .m_name = "rlprof.ledger._core",
    .m_doc = "The ledger's C core. Its Python twin is rlprof.ledger.twin.",
    .m_methods = functions,
    .m_slots = slots,
};

PyMODINIT_FUNC
PyInit__core(void)
{
#ifdef Py_GIL_DISABLED
    /* The core relies on the lock, and importing it would bring the lock back for the whole training. */
    PyErr_SetString(PyExc_ImportError, "rlprof's C core needs the interpreter's lock");
    return NULL;
#endif
    return PyModuleDef_Init(&definition);
}
