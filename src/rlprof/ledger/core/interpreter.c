/* The only file that uses CPython's internal headers: frames as they are in memory, and pending calls. */
#define Py_BUILD_CORE 1
#define _GNU_SOURCE 1
#include "interpreter.h"

/* Some of them have parameters that they do not use. */
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wunused-parameter"
#include <internal/pycore_ceval.h>
#include <internal/pycore_code.h>
#include <internal/pycore_frame.h>
#include <internal/pycore_interp.h>
#include <internal/pycore_pystate.h>
#if PY_VERSION_HEX >= 0x030E0000
#include <internal/pycore_interpframe.h>
#endif
#pragma GCC diagnostic pop

#include <string.h>
#ifdef __linux__
#include <sys/uio.h>
#include <unistd.h>
#endif

#if PY_VERSION_HEX >= 0x030D0000
#define CURRENT_FRAME(tstate) ((tstate)->current_frame)
#define INSTRUCTION(frame) ((frame)->instr_ptr)
#else
#define CURRENT_FRAME(tstate) ((tstate)->cframe->current_frame)
#define INSTRUCTION(frame) ((frame)->prev_instr)
#endif

typedef struct _PyInterpreterFrame InterpreterFrame;

/* The kernel copies, so an address that is not mapped is an error and not a crash. */
int
peek(const Peek *parts, int count)
{
#ifdef __linux__
    struct iovec local[4], remote[4];
    for (int i = 0; i < count; i++) {
        local[i] = (struct iovec){parts[i].into, parts[i].size};
        remote[i] = (struct iovec){(void *)parts[i].address, parts[i].size};
    }
    ssize_t copied = process_vm_readv(getpid(), local, (unsigned long)count, remote, (unsigned long)count, 0);
    int whole = 0;
    while (whole < count && copied >= (ssize_t)parts[whole].size) {
        copied -= (ssize_t)parts[whole++].size;
    }
    return whole;
#else
    (void)parts, (void)count;
    return 0;
#endif
}

static const void *
code_of(const InterpreterFrame *frame)
{
#if PY_VERSION_HEX >= 0x030E0000
    return (const void *)(frame->f_executable.bits & ~(uintptr_t)3);
#elif PY_VERSION_HEX >= 0x030D0000
    return frame->f_executable;
#else
    return frame->f_code;
#endif
}

#define HEAD offsetof(InterpreterFrame, localsplus)
#define BELOW 3072 /* bytes below a frame, where its callers usually are */

/* The state of the main thread and its C stack, which `cframe` is on, stay mapped until the process ends. The sanitizers
 * do not look: the interpreter writes meanwhile, and where `cframe` was may be something else by now. */
__attribute__((noinline, no_sanitize("address", "thread"))) static const InterpreterFrame *
current_frame(const PyThreadState *main)
{
#if PY_VERSION_HEX >= 0x030D0000
    return __atomic_load_n(&main->current_frame, __ATOMIC_RELAXED);
#else
    const _PyCFrame *cframe = __atomic_load_n(&main->cframe, __ATOMIC_RELAXED);
    return cframe != NULL ? __atomic_load_n(&cframe->current_frame, __ATOMIC_RELAXED) : NULL;
#endif
}

bool
peek_spots(const PyThreadState *main, Spot *spots, int most, int *found, Peek more, bool *got)
{
    /* Numbers, because the addresses that are found may be anything. */
    uintptr_t first = (uintptr_t)current_frame(main), below_at = first > BELOW ? first - BELOW : 0, at = first;
    char below[BELOW];
    InterpreterFrame frame;
    Peek parts[] = {more, {(const void *)first, &frame, HEAD}, {(const void *)below_at, below, BELOW}};
    int copied = peek(parts, first != 0 ? 3 : 1);
    *found = 0;
    *got = copied > 0;
    for (bool whole = copied > 1; whole && *found < most;) {
        const void *code = code_of(&frame);
        if (code == NULL || (uintptr_t)code % sizeof(void *) != 0) {
            return false;
        }
        spots[(*found)++] = (Spot){(const void *)at, code, INSTRUCTION(&frame)};
        at = (uintptr_t)frame.previous;
        if (copied == 3 && at >= below_at && at - below_at <= BELOW - HEAD) {
            memcpy(&frame, below + (at - below_at), HEAD);
        }
        else {
            whole = at != 0 && *found < most && peek(&(Peek){(const void *)at, &frame, HEAD}, 1) == 1;
        }
    }
    return *found > 0 && (at == 0 || *found == most);
}

/* Skips frames that are just being made, and those that CPython itself puts between C and Python. */
static const void *
complete(InterpreterFrame *frame)
{
    while (frame != NULL && _PyFrame_IsIncomplete(frame)) {
        frame = frame->previous;
    }
    return frame;
}

const void *
frame_innermost(const PyThreadState *tstate)
{
#if PY_VERSION_HEX < 0x030D0000
    if (tstate->cframe == NULL) {
        return NULL;
    }
#endif
    return complete(CURRENT_FRAME(tstate));
}

const void *
frame_back(const void *frame)
{
    return complete(((const InterpreterFrame *)frame)->previous);
}

PyCodeObject *
frame_code(const void *frame)
{
    return (PyCodeObject *)code_of(frame);
}

int
code_index(PyCodeObject *code, const void *instruction)
{
    uintptr_t start = (uintptr_t)_PyCode_CODE(code), at = (uintptr_t)instruction;
    if (at < start || at >= start + (uintptr_t)_PyCode_NBYTES(code)) {
        return -1;
    }
    return (int)((at - start) / sizeof(_Py_CODEUNIT));
}

int
frame_instruction(const void *frame)
{
    int index = code_index(frame_code(frame), INSTRUCTION((const InterpreterFrame *)frame));
    return index < 0 ? 0 : index;
}

int
code_line(PyCodeObject *code, int instruction)
{
    return PyCode_Addr2Line(code, instruction * (int)sizeof(_Py_CODEUNIT));
}

static bool
is_ending(void)
{
#if PY_VERSION_HEX >= 0x030D0000
    return Py_IsFinalizing();
#else
    return _Py_IsFinalizing();
#endif
}

bool
call_on_main(PyThreadState *main, int (*function)(void *), void *argument)
{
    if (is_ending()) {
        return false;
    }
#if PY_VERSION_HEX < 0x030C0000
    /* Py_AddPendingCall would look at the thread that holds the GIL, which may be ending. */
    return _PyEval_AddPendingCall(main->interp, function, argument) == 0;
#else
    (void)main;
    return Py_AddPendingCall(function, argument) == 0;
#endif
}

/* Before 3.13 a pending call that another thread has added interrupts the main thread only when it next takes the GIL.
 * A thread that runs alone never does. Other threads cannot make the call, and would only become slow. So the flag is
 * set while the main thread has the GIL. */
void
wake_main(PyThreadState *main)
{
#if PY_VERSION_HEX >= 0x030D0000
    (void)main;
#else
    if (is_ending()) {
        return;
    }
    struct _ceval_state *ceval = &main->interp->ceval;
#if PY_VERSION_HEX >= 0x030C0000
    bool runs = _Py_atomic_load_relaxed(&ceval->gil->locked) &&
                (PyThreadState *)_Py_atomic_load_relaxed(&ceval->gil->last_holder) == main;
#else
    bool runs = _PyThreadState_UncheckedGet() == main;
#endif
    if (runs) {
        _Py_atomic_store_relaxed(&ceval->eval_breaker, 1);
    }
#endif
}
