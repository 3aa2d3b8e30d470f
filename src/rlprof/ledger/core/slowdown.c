/* Slows an operation down by a known fraction of its cost, for an experiment: what would a faster operation bring?
 *
 * The slowdowns are in memory that the processes of a training share, so that the experiment can change them between
 * two iterations. A call computes for a further fraction of its CPU time, with the GIL or without. If the operation
 * waits, it sleeps for a fraction of its duration. The slowdown follows the call, so code that needs the result
 * waits longer. Without an experiment, no span pays for this. */
#include "core.h"

static int64_t
thread_cpu(void)
{
    return clock_read(CLOCK_THREAD_CPUTIME_ID);
}

static void
add(int64_t *total, int64_t value)
{
    __atomic_fetch_add(total, value, __ATOMIC_RELAXED);
}

void
slowdown_find(Ledger *ledger, Operation *operation)
{
    operation->slowdown = NULL;
    for (Py_ssize_t i = 0; ledger->slowed != NULL && i < PyTuple_GET_SIZE(ledger->slowed); i++) {
        if (PyUnicode_Compare(PyTuple_GET_ITEM(ledger->slowed, i), operation->name) == 0) {
            operation->slowdown = (Slowdown *)ledger->slowdowns.buf + i;
        }
    }
}

/* A span has begun. Returns the CPU time from which it counts; -1 if it does not count, because it is nested in a
 * call of the same operation or runs in a task. */
int64_t
slowdown_begin(const Lane *lane, Slowdown *slowdown)
{
    for (const Entry *entry = lane->top - 1; entry > lane->stack; entry--) {
        if (entry->span->operation == lane->top->span->operation) {
            return -1;
        }
    }
    if (lane->kind == LANE_TASK) {
        add(&slowdown->missed, 1);
        return -1;
    }
    return thread_cpu();
}

static void
spin(int64_t ns)
{
    Py_BEGIN_ALLOW_THREADS;
    for (int64_t end = thread_cpu() + ns; thread_cpu() < end;) {
    }
    Py_END_ALLOW_THREADS;
}

/* In Python code, which gives up the GIL as often as any other. */
static void
spin_in_python(Ledger *ledger, int64_t ns)
{
    PyObject *answer = PyObject_CallMethod(ledger->hooks, "spin", "L", (long long)ns);
    if (answer == NULL && !pass_on_interrupt()) {
        complain(ledger, "an operation could not be slowed down");
        PyErr_Clear();
    }
    Py_XDECREF(answer);
}

/* A sleep always takes a little longer than requested; the next one is that much shorter. */
static void
nap(const Clock *clock, int64_t ns)
{
    static THREAD_LOCAL int64_t owed;
    owed += ns;
    if (owed <= 0) {
        return;
    }
    int64_t began = clock_now(clock);
    Py_BEGIN_ALLOW_THREADS;
    sleep_ns(owed);
    Py_END_ALLOW_THREADS;
    owed -= clock_now(clock) - began;
}

/* A span has ended. An exception that ends it is set aside. */
void
slowdown_end(Ledger *ledger, const Entry *ended, int64_t now)
{
    Slowdown *slowdown = ended->span->operation->slowdown;
    if (slowdown == NULL || ended->slowed_from < 0) {
        return;
    }
    int64_t cpu = thread_cpu() - ended->slowed_from, wall = now - ended->start;
    add(&slowdown->calls, 1);
    add(&slowdown->cpu, cpu);
    add(&slowdown->wall, wall);
    int64_t computed = (int64_t)(slowdown->spin * (double)cpu);
    int64_t held = (int64_t)(slowdown->held * (double)computed);
    int64_t slept = (int64_t)(slowdown->sleep * (double)wall);
    if (computed <= 0 && slept <= 0) {
        return;
    }
    PyObject *type, *value, *traceback;
    PyErr_Fetch(&type, &value, &traceback);
    if (computed > held) {
        spin(computed - held);
    }
    if (held > 0) {
        spin_in_python(ledger, held);
    }
    if (slept > 0) {
        nap(&ledger->clock, slept);
    }
    PyErr_Restore(type, value, traceback);
    add(&slowdown->added, computed + slept);
}

void
slowdown_free(Ledger *ledger)
{
    ledger->mode &= ~MODE_SLOWED;
    if (ledger->slowdowns.obj != NULL) {
        PyBuffer_Release(&ledger->slowdowns);
    }
    Py_CLEAR(ledger->slowed);
}

/* slow_down(memory, names): slows these operations down from now on, as one Slowdown per operation in the memory
 * says. Call it before their first span: an open span has not noted its CPU time. */
PyObject *
ledger_slow_down(Ledger *ledger, PyObject *args)
{
    PyObject *memory, *names;
    if (!PyArg_ParseTuple(args, "OO!", &memory, &PyTuple_Type, &names)) {
        return NULL;
    }
    if (ledger->slowed != NULL) {
        PyErr_SetString(PyExc_RuntimeError, "operations are slowed down already");
        return NULL;
    }
    if (PyObject_GetBuffer(memory, &ledger->slowdowns, PyBUF_WRITABLE) < 0) {
        return NULL;
    }
    if (ledger->slowdowns.len < (Py_ssize_t)sizeof(Slowdown) * PyTuple_GET_SIZE(names)) {
        PyBuffer_Release(&ledger->slowdowns);
        PyErr_SetString(PyExc_ValueError, "the memory is too small for so many operations");
        return NULL;
    }
    ledger->slowed = Py_NewRef(names);
    for (uint32_t i = 0; i < ledger->operations_used; i++) {
        slowdown_find(ledger, ledger->operations[i]);
    }
    ledger->mode |= MODE_SLOWED;
    Py_RETURN_NONE;
}

#define MOST_SAMPLED 64

static bool
works_inside(const Thread *thread, PyObject *name)
{
    const Lane *lane = thread->lane;
    if (lane == NULL || lane->waits > 0 || thread->cpu.kind == CPU_OFF) {
        return false;
    }
    for (const Entry *entry = lane->top; entry > lane->stack; entry--) {
        if (PyUnicode_Compare(entry->span->operation->name, name) == 0) {
            return true;
        }
    }
    return false;
}

/* sample(name, ns): sleeps for so long and keeps the GIL. Returns that time, summed over the threads inside the
 * operation, and the CPU time that they got meanwhile: threads that compute without the GIL go on, others wait. */
PyObject *
ledger_sample(Ledger *ledger, PyObject *args)
{
    PyObject *name;
    long ns;
    if (!PyArg_ParseTuple(args, "Ul", &name, &ns)) {
        return NULL;
    }
    clockid_t clocks[MOST_SAMPLED];
    int count = 0;
    for (const Thread *thread = ledger->threads; thread != NULL && count < MOST_SAMPLED; thread = thread->next) {
        if (thread->ident != PyThread_get_thread_ident() && works_inside(thread, name)) {
            clocks[count++] = thread->cpu.clock;
        }
    }
    if (count == 0) {
        return Py_BuildValue("(ii)", 0, 0);
    }
    int64_t got = 0, began = clock_now(&ledger->clock);
    for (int i = 0; i < count; i++) {
        got -= clock_read(clocks[i]);
    }
    sleep_ns(ns);
    for (int i = 0; i < count; i++) {
        got += clock_read(clocks[i]);
    }
    return Py_BuildValue("(LL)", (long long)(count * (clock_now(&ledger->clock) - began)), (long long)got);
}
