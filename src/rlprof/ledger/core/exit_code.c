/* The exit code of the SystemExit that ends the program.
 *
 * Python handles that exception in C before it calls the functions of atexit, and keeps no trace of it: sys.last_value
 * is for other exceptions only. But Python reads the exception's `code`, and at that time no Python function runs. So the
 * slot with which SystemExit reads attributes notes this one read. Every read returns the same value as before, and
 * Python code cannot see the slot. */
#include "core.h"
#include "interpreter.h"

static PyObject *code; /* as the process exits: an int, or a str that Python prints before it exits with 1 */

static PyObject *
as_python_exits(PyObject *value)
{
    if (value == Py_None) {
        return PyLong_FromLong(0);
    }
    if (PyLong_CheckExact(value) || PyUnicode_CheckExact(value)) {
        return Py_NewRef(value);
    }
    /* Any other object must not live longer because of rlprof. */
    return PyLong_FromLong(PyLong_Check(value) ? PyLong_AsLong(value) : 1);
}

static PyObject *
read_attribute(PyObject *error, PyObject *name)
{
    PyObject *value = PyObject_GenericGetAttr(error, name);
    if (value != NULL && frame_innermost(PyThreadState_Get()) == NULL && PyUnicode_Check(name) &&
        PyUnicode_CompareWithASCIIString(name, "code") == 0) {
        Py_XSETREF(code, as_python_exits(value));
        PyErr_Clear(); /* an int that is too large */
    }
    return value;
}

#if PY_VERSION_HEX < 0x030C0000
/* Before 3.12, sys.exit(3) only makes an exception when it is caught: there is no attribute to read. So it is made here,
 * in the C function of sys.exit, which stays the same object. An exception as the code is left alone: Python would read
 * that one's `code`. */
static _PyCFunctionFast sys_exit;

static PyObject *
exit_with_exception(PyObject *module, PyObject *const *arguments, Py_ssize_t count)
{
    PyObject *result = sys_exit(module, arguments, count);
    if (PyErr_ExceptionMatches(PyExc_SystemExit)) {
        PyObject *type, *value, *traceback;
        PyErr_Fetch(&type, &value, &traceback);
        if (value == NULL || !PyExceptionInstance_Check(value)) {
            PyErr_NormalizeException(&type, &value, &traceback);
        }
        PyErr_Restore(type, value, traceback);
    }
    return result;
}

static void
follow_sys_exit(void)
{
    PyObject *function = PySys_GetObject("exit"); /* borrowed */
    if (sys_exit == NULL && function != NULL && PyCFunction_CheckExact(function) &&
        PyCFunction_GET_FLAGS(function) == METH_FASTCALL) {
        PyMethodDef *method = ((PyCFunctionObject *)function)->m_ml;
        sys_exit = (_PyCFunctionFast)(void (*)(void))method->ml_meth;
        method->ml_meth = (PyCFunction)(void (*)(void))exit_with_exception;
    }
}
#endif

PyObject *
exit_follow(PyObject *Py_UNUSED(module), PyObject *Py_UNUSED(arguments))
{
    PyTypeObject *type = (PyTypeObject *)PyExc_SystemExit;
    if (type->tp_getattro == PyObject_GenericGetAttr) {
        type->tp_getattro = read_attribute;
    }
#if PY_VERSION_HEX < 0x030C0000
    follow_sys_exit();
#endif
    Py_RETURN_NONE;
}

PyObject *
exit_code(PyObject *Py_UNUSED(module), PyObject *Py_UNUSED(arguments))
{
    return Py_NewRef(code != NULL ? code : Py_None);
}
