/* The Ledger type: the C core as Python sees it. */
#include "core.h"

#include <stddef.h>
#include <structmember.h>

#include <string.h>
#include <unistd.h>

PyTypeObject *Ledger_Type;

bool
pass_on_interrupt(void)
{
    if (!PyErr_Occurred() || PyErr_ExceptionMatches(PyExc_Exception)) {
        return false;
    }
    PyThreadState_SetAsyncExc(PyThread_get_thread_ident(), PyErr_Occurred());
    PyErr_Clear();
    return true;
}

void
complain(Ledger *ledger, const char *what)
{
    PyObject *type, *value, *traceback;
    PyErr_Fetch(&type, &value, &traceback);
    PyErr_NormalizeException(&type, &value, &traceback); /* an exception raised in C may still be a bare text */
    PyObject *cause = value != NULL ? value : Py_None;
    PyObject *done = PyObject_CallMethod(ledger->hooks, "warn", "sO", what, cause);
    if (done == NULL) {
        pass_on_interrupt();
        PyErr_Clear(); /* not even a warning that was made an error may end the training */
    }
    Py_XDECREF(done);
    PyErr_Restore(type, value, traceback);
}

static int
choose_clock(Ledger *ledger, const char *name)
{
    if (strcmp(name, "auto") == 0) {
        return clock_open(&ledger->clock, clock_tsc_refusal() ? CLOCK_KIND_MONOTONIC : CLOCK_KIND_TSC);
    }
    ClockKind kind = CLOCK_KIND_MONOTONIC;
    if (strcmp(name, "tsc") == 0) {
        kind = CLOCK_KIND_TSC;
    }
    else if (strcmp(name, "fake") == 0) {
        kind = CLOCK_KIND_FAKE;
    }
    else if (strcmp(name, "monotonic") != 0) {
        PyErr_Format(PyExc_ValueError, "clock is 'auto', 'monotonic', 'tsc' or 'fake', not '%.50s'", name);
        return -1;
    }
    if (clock_open(&ledger->clock, kind) < 0) {
        PyErr_Format(PyExc_ValueError, "the TSC cannot be used here: %s; use clock='auto'", clock_tsc_refusal());
        return -1;
    }
    return 0;
}

static int
choose_cpu(Ledger *ledger, const char *name)
{
    if (strcmp(name, "auto") == 0) {
        bool fake = ledger->clock.kind == CLOCK_KIND_FAKE;
        ledger->cpu_kind = fake ? CPU_FAKE : cpu_rseq_works() ? CPU_RSEQ : CPU_OFF;
    }
    else if (strcmp(name, "syscall") == 0) {
        ledger->cpu_kind = CPU_SYSCALL;
    }
    else if (strcmp(name, "off") != 0) { /* which is the default */
        PyErr_Format(PyExc_ValueError, "cpu is 'auto', 'syscall' or 'off', not '%.50s'", name);
        return -1;
    }
    return 0;
}

/* The driver exists from the start, before any span on its thread. */
static int
make_driver(Ledger *ledger, unsigned long ident)
{
    PyObject *name = PyUnicode_InternFromString("main");
    Thread *driver = name ? thread_new(ledger, ident, name, name) : NULL;
    Py_XDECREF(name);
    if (driver == NULL) {
        PyErr_NoMemory();
        return -1;
    }
    ledger->driver = driver;
    ledger->driving = ident;
    restate(driver, 0);
    return 0;
}

static PyObject *
ledger_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    PyObject *hooks;
    unsigned long driver;
    const char *clock = "auto", *cpu = "auto";
    static char *names[] = {"hooks", "driver", "clock", "cpu", NULL};
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "Ok|ss", names, &hooks, &driver, &clock, &cpu)) {
        return NULL;
    }
    Ledger *ledger = (Ledger *)type->tp_alloc(type, 0);
    if (ledger == NULL) {
        return NULL;
    }
    ledger->hooks = Py_NewRef(hooks);
    ledger->sharing = &ledger->unshared;
    ledger->clear_refs = -1;
    ledger->cpu_token = cpu_new_token();
    ledger->pending = PyList_New(0);
    if (map_reserve(&ledger->plain_spans) < 0) {
        Py_DECREF(ledger);
        return PyErr_NoMemory();
    }
    ledger->profile = profile_new(ledger);
    if (ledger->pending == NULL || ledger->profile == NULL || choose_clock(ledger, clock) < 0 ||
        choose_cpu(ledger, cpu) < 0 || make_driver(ledger, driver) < 0) {
        Py_DECREF(ledger);
        return NULL;
    }
    return (PyObject *)ledger;
}

static PyObject *
ledger_set_driver(Ledger *ledger, PyObject *Py_UNUSED(ignored))
{
    startup_end(ledger); /* it belonged to the former driver */
    Thread *thread = thread_here(ledger);
    if (thread != NULL && !ledger->elsewhere) { /* a worker's process has no driver */
        attribution_set_driver(ledger, thread, ledger_time(ledger));
    }
    Py_RETURN_NONE;
}

static PyObject *
ledger_set_time(Ledger *ledger, PyObject *args)
{
    long long wall, cpu;
    if (!PyArg_ParseTuple(args, "LL", &wall, &cpu)) {
        return NULL;
    }
    ledger->clock.fake = wall;
    ledger->clock.fake_cpu = cpu;
    Py_RETURN_NONE;
}

/* A pickled profile() is found by getattr on what this returns. */
static PyObject *
ledger_reduce(Ledger *ledger, PyObject *Py_UNUSED(ignored))
{
    return PyObject_CallMethod(ledger->hooks, "reduce", NULL);
}

static PyObject *
ledger_now(Ledger *ledger, PyObject *Py_UNUSED(ignored))
{
    return PyLong_FromLongLong(clock_now(&ledger->clock));
}

static PyObject *
ledger_get_enabled(Ledger *ledger, void *Py_UNUSED(closure))
{
    return PyBool_FromLong(ledger->mode & MODE_ENABLED);
}

#define METHOD(name, function, flags, doc) {name, (PyCFunction)(void (*)(void))(function), flags, PyDoc_STR(doc)}
static PyMethodDef ledger_methods[] = {
    METHOD("start", ledger_start, METH_NOARGS, "Begin or go on recording."),
    METHOD("stop", ledger_stop, METH_NOARGS, "Stop recording; what was recorded stays."),
    METHOD("reset", ledger_reset, METH_NOARGS, "Forget what was recorded; open spans count from here."),
    METHOD("after_fork", ledger_after_fork, METH_NOARGS, "Begin a life of its own in a forked child."),
    METHOD("set_driver", ledger_set_driver, METH_NOARGS, "The calling thread is the driver from here on."),
    METHOD("add_steps", ledger_add_steps, METH_O, "Count environment steps."),
    METHOD("add_episodes", ledger_add_episodes, METH_O, "Count episodes that ended."),
    METHOD("iteration", ledger_iteration, METH_O, "End the open iteration; with False, begin the next one."),
    METHOD("drop_iteration", ledger_drop_iteration, METH_NOARGS, "Discard the open iteration; its time is in no gain."),
    METHOD("timeline", ledger_timeline, METH_O, "Keep the last N closed spans; 0 switches that off."),
    METHOD("drain_timeline", timeline_drain, METH_NOARGS, "(packed events, events lost) since the last drain."),
    METHOD("drain_iterations", iteration_drain, METH_NOARGS, "(packed marks, packed gains) since the last drain."),
    METHOD("set_device", ledger_set_device, METH_O, "Time device spans with this device, or None."),
    METHOD("set_time", ledger_set_time, METH_VARARGS, "Set a fake clock: wall ns, CPU ns."),
    METHOD("begin_startup", ledger_begin_startup, METH_O, "On the driver: open a span until the training begins."),
    METHOD("end_startup", ledger_end_startup, METH_NOARGS, "The training begins: end that span."),
    METHOD("split", ledger_split, METH_VARARGS, "End a span where its last inner span ended; name the rest."),
    METHOD("rename", ledger_rename, METH_VARARGS, "Book the driver's spans of one operation to another."),
    METHOD("watch", ledger_watch, METH_O, "Report every span to a function: its operation, and True if it begins."),
    METHOD("open_operations", ledger_open_operations, METH_NOARGS, "Open spans of the thread's lane, outermost first."),
    METHOD("slow_down", ledger_slow_down, METH_VARARGS, "Slow operations down by the fractions in shared memory."),
    METHOD("sample", ledger_sample, METH_VARARGS, "Hold the GIL: thread time and CPU time in an operation."),
    METHOD("depth", ledger_depth, METH_NOARGS, "Number of open spans on the calling thread's lane."),
    METHOD("share", ledger_share, METH_VARARGS, "Share the clocks with other processes through a file: path, create."),
    METHOD("leave", ledger_leave, METH_NOARGS, "Stop sharing the clocks."),
    METHOD("members", ledger_members, METH_NOARGS, "The processes that share the clocks."),
    METHOD("ended", ledger_ended, METH_NOARGS, "Members that no longer run."),
    METHOD("dismiss", ledger_dismiss, METH_O, "Remove a member that has ended."),
    METHOD("request", ledger_request, METH_O, "Request the members' records; wait at most so many seconds."),
    METHOD("listen", ledger_listen, METH_O, "Wait for a request: the driver's epoch, -1 when it is gone, else None."),
    METHOD("answer", ledger_answer, METH_NOARGS, "The requested records are written."),
    METHOD("follow", ledger_follow, METH_O, "Wrap Handle._run so that the ledger follows each callback."),
    METHOD("pulse", ledger_pulse, METH_O, "Book the time while the process is stopped to this span; None ends that."),
    METHOD("stopped", ledger_stopped, METH_VARARGS, "The process was stopped: the span to book it to, start, end."),
    METHOD("stacks", ledger_stacks, METH_VARARGS, "Sample the Python stack every so many ns: period (0 ends it), main."),
    METHOD("stack_tick", ledger_stack_tick, METH_NOARGS, "Sample the driver's Python stack now; False: it has none."),
    METHOD("drain_stacks", ledger_drain_stacks, METH_NOARGS, "(records, new lines, lost ns, CPU ns) since the last."),
    METHOD("own_time", ledger_own_time, METH_O, "Begin (True) or end (False) rlprof's own work on this thread."),
    METHOD("__reduce__", ledger_reduce, METH_NOARGS, "Pickled as its profiler."),
    METHOD("collected", ledger_collected, METH_FASTCALL, "For gc.callbacks: time a run of the garbage collector."),
    METHOD("collections", ledger_collections, METH_NOARGS, "What the garbage collector did since the training began."),
    METHOD("now", ledger_now, METH_NOARGS, "The ledger's clock, ns."),
    METHOD("raw", ledger_raw, METH_NOARGS, "Everything recorded, as plain data."),
    {NULL, NULL, 0, NULL},
};

static PyMemberDef ledger_fields[] = {
    {"steps", T_LONGLONG, offsetof(Ledger, iterations.steps), READONLY, PyDoc_STR("Environment steps counted.")},
    {"follows_tasks", T_BOOL, offsetof(Ledger, follows_tasks), 0, PyDoc_STR("True while event loops are followed.")},
    {"step_cost", T_LONGLONG, offsetof(Ledger, step_cost), 0, PyDoc_STR("Untimed cost of following a callback, ns.")},
    {"span_cost", T_LONGLONG, offsetof(Ledger, span_cost), 0, PyDoc_STR("Cost of a span outside of itself, ns.")},
    {"recorder", T_OBJECT, offsetof(Ledger, profile), READONLY, PyDoc_STR("The builtin profile().")},
    {"local", T_ULONG, offsetof(Ledger, local), 0, PyDoc_STR("In a worker: the thread that may train by itself.")},
    {"driver", T_ULONG, offsetof(Ledger, driving), 0, PyDoc_STR("The thread that drives a training here; 0: none.")},
    {NULL, 0, 0, 0, NULL},
};

static PyGetSetDef ledger_getset[] = {
    {"enabled", (getter)ledger_get_enabled, NULL, NULL, NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

/* ---- memory ---- */

static int
ledger_traverse(Ledger *ledger, visitproc visit, void *arg)
{
    Py_VISIT(Py_TYPE(ledger));
    Py_VISIT(ledger->hooks);
    Py_VISIT(ledger->profile);
    Py_VISIT(ledger->device);
    Py_VISIT(ledger->watcher);
    Py_VISIT(ledger->slowdowns.obj);
    Py_VISIT(ledger->pending);
    Py_VISIT(ledger->running_loop);
    Py_VISIT(ledger->current_task);
    for (uint32_t i = 0; i < ledger->operations_used; i++) {
        for (Span *span = ledger->operations[i]->spans; span != NULL; span = span->next) {
            Py_VISIT(span);
        }
    }
    return 0;
}

static int
ledger_clear(Ledger *ledger)
{
    ledger->mode &= ~MODE_ENABLED;
    ledger->startup = ledger->startup_rest = NULL;
    ledger->mode &= ~MODE_WATCHED;
    Py_CLEAR(ledger->watcher);
    slowdown_free(ledger);
    Py_CLEAR(ledger->profile);
    for (uint32_t i = 0; i < ledger->operations_used; i++) {
        Span *span = ledger->operations[i]->spans;
        ledger->operations[i]->spans = NULL;
        while (span != NULL) {
            Span *next = span->next;
            Py_SETREF(span->exit, Py_NewRef(Py_None)); /* it holds the span */
            Py_DECREF(span);
            span = next;
        }
    }
    return 0;
}

static void
ledger_dealloc(Ledger *ledger)
{
    PyTypeObject *type = Py_TYPE(ledger);
    PyObject_GC_UnTrack(ledger);
    Stacks *stacks = ledger->stacks;
    ledger->stacks = NULL;
    stacks_free(stacks); /* first: what follows may run Python code, and so samples */
    ledger_clear(ledger);
    pulse_end(ledger);
    page_close(&ledger->member);
    threads_free(ledger);
    lanes_free(ledger);
    tree_free(ledger);
    for (uint32_t i = 0; i < ledger->operations_used; i++) {
        Py_XDECREF(ledger->operations[i]->name);
        Py_XDECREF(ledger->operations[i]->category);
        free(ledger->operations[i]);
    }
    free(ledger->operations);
    free(ledger->by_name);
    map_free(&ledger->plain_spans);
    free(ledger->nodes);
    free(ledger->lanes);
    free(ledger->timeline.events);
    free(ledger->iterations.gains);
    free(ledger->iterations.marks);
    histogram_free(&ledger->iterations.durations);
    if (ledger->clear_refs >= 0) {
        close(ledger->clear_refs);
    }
    Py_XDECREF(ledger->hooks);
    Py_XDECREF(ledger->device);
    Py_XDECREF(ledger->watcher);
    Py_XDECREF(ledger->pending);
    Py_XDECREF(ledger->running_loop);
    Py_XDECREF(ledger->current_task);
    type->tp_free((PyObject *)ledger);
    Py_DECREF(type);
}

static PyType_Slot ledger_slots[] = {
    {Py_tp_doc, "Ledger(hooks, driver, clock='auto', cpu='auto')\n--\n\nRecords spans and accounts for every instant."},
    {Py_tp_new, ledger_new},
    {Py_tp_traverse, ledger_traverse},
    {Py_tp_clear, ledger_clear},
    {Py_tp_dealloc, ledger_dealloc},
    {Py_tp_methods, ledger_methods},
    {Py_tp_members, ledger_fields},
    {Py_tp_getset, ledger_getset},
    {0, NULL},
};
static PyType_Spec ledger_spec = {
    .name = "rlprof.ledger._core.Ledger",
    .basicsize = sizeof(Ledger),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC,
    .slots = ledger_slots,
};

int
ledger_setup(PyObject *module)
{
    Ledger_Type = (PyTypeObject *)PyType_FromModuleAndSpec(module, &ledger_spec, NULL);
    PyObject *compiled = Ledger_Type ? PyImport_ImportModule("rlprof.ledger.compiled") : NULL;
    PyObject *traced = compiled ? PyObject_GetAttrString(compiled, "profile") : NULL;
    int result = traced ? PyObject_SetAttrString((PyObject *)Ledger_Type, "profile", traced) : -1;
    Py_XDECREF(compiled);
    Py_XDECREF(traced);
    return result < 0 ? -1 : PyModule_AddType(module, Ledger_Type);
}
