/* The samples until Python drains them, and the lines of code that they consist of. */
#include "stacks.h"

#include <stdlib.h>

#define MOST_CODE 65536 /* lines, so that code that a loop makes does not use up the training's memory */
#define MOST_LOG (1u << 19)

/* ---- lines ---- */

/* The key of a place in a code object. Addresses are multiples of 16 below 2^48. */
static uint64_t
key_of(const PyCodeObject *code, int number)
{
    return ((uint64_t)(uintptr_t)code >> 4) << 20 | (uint64_t)(number < 0 ? 0 : number > 0xFFFFF ? 0xFFFFF : number);
}

static bool
room_for_line(Stacks *stacks)
{
    if (stacks->lines_used < stacks->lines_capacity) {
        return true;
    }
    uint32_t wanted = stacks->lines_capacity ? stacks->lines_capacity * 2 : 256;
    CodeLine *lines = wanted <= MOST_CODE ? realloc(stacks->lines, wanted * sizeof *lines) : NULL;
    if (lines == NULL) {
        return false;
    }
    stacks->lines = lines;
    stacks->lines_capacity = wanted;
    return true;
}

/* The number of a line; -1: there are too many. */
int64_t
stack_line(Stacks *stacks, PyCodeObject *code, int instruction)
{
    uint64_t key = key_of(code, instruction);
    uintptr_t known = (uintptr_t)map_get(&stacks->by_instruction, key);
    if (LIKELY(known != 0)) {
        return (int64_t)known - 1;
    }
    int line = code_line(code, instruction);
    for (int before = instruction; line <= 0 && before > 0;) { /* what the compiler adds has no line of its own */
        line = code_line(code, --before);
    }
    line = line > 0 ? line : code->co_firstlineno;
    known = (uintptr_t)map_get(&stacks->by_line, key_of(code, line));
    if (known == 0) {
        if (!room_for_line(stacks)) {
            return -1;
        }
        if (map_get(&stacks->codes, (uintptr_t)code) == NULL) {
            if (map_put(&stacks->codes, (uintptr_t)code, code) < 0) {
                return -1;
            }
            Py_INCREF(code);
        }
        known = stacks->lines_used + 1;
        if (map_put(&stacks->by_line, key_of(code, line), (void *)known) < 0) {
            return -1;
        }
        stacks->lines[stacks->lines_used++] = (CodeLine){code, line};
    }
    map_put(&stacks->by_instruction, key, (void *)known); /* without memory it is found the slow way again */
    return (int64_t)known - 1;
}

/* ---- the log ---- */

int64_t *
stack_log_room(Stacks *stacks, size_t words)
{
    if (stacks->log_used + words > stacks->log_capacity) {
        size_t wanted = stacks->log_capacity ? stacks->log_capacity * 2 : 4096;
        int64_t *log = wanted <= MOST_LOG ? realloc(stacks->log, wanted * sizeof *log) : NULL;
        if (log == NULL) {
            return NULL;
        }
        stacks->log = log;
        stacks->log_capacity = wanted;
    }
    return stacks->log + stacks->log_used;
}

void
stacks_move(Ledger *ledger, const Node *from, const Node *to, int64_t since)
{
    Stacks *stacks = ledger->stacks;
    /* Phases move time hundreds of times per second, and mostly since the newest sample. */
    bool any = stacks != NULL && (since == INT64_MIN || stacks->newest > since);
    int64_t *record = any ? stack_log_room(stacks, 4) : NULL;
    if (record != NULL) {
        record[0] = 0;
        record[1] = since;
        record[2] = from != NULL ? (int64_t)from->id : -1;
        record[3] = to != NULL ? (int64_t)to->id : -1;
        stacks->log_used += 4;
    }
}

static PyObject *
drain_record(const int64_t *record)
{
    if (record[0] == 0) {
        return Py_BuildValue("(LLL)", record[1], record[2], record[3]);
    }
    Py_ssize_t count = record[0] - 5;
    PyObject *lines = PyTuple_New(count);
    for (Py_ssize_t i = 0; lines != NULL && i < count; i++) {
        PyObject *line = PyLong_FromLongLong(record[record[0] - 1 - i]);
        if (line == NULL) {
            Py_CLEAR(lines);
            break;
        }
        PyTuple_SET_ITEM(lines, i, line);
    }
    return lines != NULL ? Py_BuildValue("(LLLLN)", record[1], record[2], record[3], record[4], lines) : NULL;
}

static PyObject *
drain_lines(const Ledger *ledger, const Stacks *stacks, uint32_t from, uint32_t to)
{
    PyObject *found = PyList_New(0);
    for (uint32_t i = from; found != NULL && i < to; i++) {
        PyObject *line = ledger->stacks == stacks ? Py_BuildValue("(Oi)", stacks->lines[i].code, stacks->lines[i].line)
                                                  : PyErr_NoMemory();
        if (line == NULL || PyList_Append(found, line) < 0) {
            Py_CLEAR(found);
        }
        Py_XDECREF(line);
    }
    return found;
}

static PyObject *
drain_log(const int64_t *log, size_t used)
{
    PyObject *records = PyList_New(0);
    for (size_t at = 0; records != NULL && at < used;) {
        const int64_t *next = log + at;
        at += next[0] > 0 ? (size_t)next[0] : 4;
        PyObject *record = drain_record(next);
        if (record == NULL || PyList_Append(records, record) < 0) {
            Py_CLEAR(records);
        }
        Py_XDECREF(record);
    }
    return records;
}

/* drain_stacks(): (records, new lines as (code, line), lost ns, CPU ns of the thread that ticks). A sample is (time, node,
 * ns, memory, numbers of lines, outermost first), a move is (since, from, to).
 *
 * Every new object may start a garbage collection. That runs code of others, which may be sampled, or even fork. So the
 * log is taken away first. */
PyObject *
ledger_drain_stacks(Ledger *ledger, PyObject *Py_UNUSED(ignored))
{
    Stacks *stacks = ledger->stacks;
    if (stacks == NULL) {
        return Py_BuildValue("([][]LL)", (long long)0, (long long)0);
    }
    int64_t *log = stacks->log;
    size_t used = stacks->log_used, capacity = stacks->log_capacity;
    uint32_t from = stacks->lines_drained;
    stacks->log = NULL;
    stacks->log_used = stacks->log_capacity = 0;
    stacks->lines_drained = stacks->lines_used;
    PyObject *lines = drain_lines(ledger, stacks, from, stacks->lines_used);
    PyObject *records = lines != NULL ? drain_log(log, used) : NULL;
    if (ledger->stacks != stacks) { /* forked meanwhile: the samples are the parent's */
        free(log);
        Py_XDECREF(records);
        Py_XDECREF(lines);
        PyErr_Clear();
        return ledger_drain_stacks(ledger, NULL);
    }
    if (records == NULL) {
        stacks->lines_drained = from; /* the samples are lost; later ones need these lines, too */
    }
    if (stacks->log == NULL) {
        stacks->log = log;
        stacks->log_capacity = capacity;
    }
    else {
        free(log);
    }
    if (records == NULL) {
        Py_XDECREF(lines);
        return NULL;
    }
    stacks_refresh(ledger);
    int64_t cpu = stacks->cpu;
    if (stacks->ticker != NULL) {
        cpu += __atomic_load_n(&stacks->ticker->cpu, __ATOMIC_RELAXED);
    }
    return Py_BuildValue("(NNLL)", records, lines, (long long)stacks->lost, (long long)cpu);
}
