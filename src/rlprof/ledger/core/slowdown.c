/* Slows an operation down by a known fraction of its cost, for an experiment: what would a faster one bring?
 *
 * The slowdowns are in memory that the processes of a training share, so that the experiment can change them between two
 * iterations. A call is slowed down by a fraction of its CPU time, computed once more, with the GIL or without; where
 * the operation waits, by a fraction of its duration, slept. The slowdown follows the call: code that needs the
 * result waits that much longer. Without an experiment, no span pays for it. */
#include "core.h"

#include <time.h>

static int64_t
cpu_of_clock(clockid_t clock)
{
    struct timespec ts = {0, 0};
    clock_gettime(clock, &ts);
    return (int64_t)ts.tv_sec * 1000000000 + ts.tv_nsec;
}

static int64_t
thread_cpu(void)
{
    return cpu_of_clock(CLOCK_THREAD_CPUTIME_ID);
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

/* A span has begun; of calls inside calls of the same operation, only the outermost counts. Returns -1 where it does
 * not, else the CPU time from which it does. */
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
    struct timespec pause = {owed / 1000000000, owed % 1000000000};
    Py_BEGIN_ALLOW_THREADS;
    nanosleep(&pause, NULL);
    Py_END_ALLOW_THREADS;
    owed -= clock_now(clock) - began;
}

/* A span has ended that took `wall`, and began at `begun` of CPU time. An exception that ends it is laid aside. */
void
slowdown_end(Ledger *ledger, Slowdown *slowdown, int64_t begun, int64_t wall)
{
    int64_t cpu = thread_cpu() - begun;
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

/* slow_down(memory, names): from now on these operations are slowed down as the memory says, one Slowdown each. Call it
 * before their first span: a span that is open has not noted where it began. */
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

/* sample(name, ns): keeps the GIL for so long, asleep. Returns how long that was for the threads inside the operation,
 * and the CPU time they have got meanwhile: threads that compute without the GIL go on, others wait. */
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
        got -= cpu_of_clock(clocks[i]);
    }
    struct timespec pause = {0, ns};
    nanosleep(&pause, NULL);
    for (int i = 0; i < count; i++) {
        got += cpu_of_clock(clocks[i]);
    }
    return Py_BuildValue("(LL)", (long long)(count * (clock_now(&ledger->clock) - began)), (long long)got);
}
