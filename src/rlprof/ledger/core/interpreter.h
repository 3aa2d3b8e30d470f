/* The few things that the ledger needs to know of CPython's insides: frames, and how to interrupt the main thread. Only
 * interpreter.c sees the internal headers. */
#ifndef RLPROF_INTERPRETER_H
#define RLPROF_INTERPRETER_H

#include <Python.h>

#include <stdbool.h>

/* Where a thread was in one function, as another thread saw it. None of the addresses may be followed. */
typedef struct {
    const void *frame;
    const void *code;
    const void *instruction;
} Spot;

/* A part of this process's memory that may be gone. */
typedef struct {
    const void *address;
    void *into;
    size_t size;
} Peek;

/* Copies at most four parts. Returns how many it has copied, up to the first that is gone. 0: the system may not allow
 * it. */
int peek(const Peek *parts, int count);

/* Without the GIL: where the main thread is now, innermost function first, at most `most` functions. Copies `more` first,
 * in the same system call; `*got` says whether it could. False: the thread has moved on meanwhile, so that what was a
 * frame is something else by now, and the links between the frames lead nowhere. */
bool peek_spots(const PyThreadState *main, Spot *spots, int most, int *found, Peek more, bool *got);

/* With the GIL: the frames of any thread. Opaque, NULL at the end. */
const void *frame_innermost(const PyThreadState *);
const void *frame_back(const void *frame);
PyCodeObject *frame_code(const void *frame); /* borrowed */
int frame_instruction(const void *frame);    /* its index in the code */

/* The index of an instruction in the code; -1 if it lies outside of it. */
int code_index(PyCodeObject *, const void *instruction);
int code_line(PyCodeObject *, int instruction);

/* Without the GIL: has a function called on the main thread, at the next instruction that allows it. False: it cannot
 * be called. */
bool call_on_main(PyThreadState *main, int (*function)(void *), void *argument);

/* Without the GIL: lets the main thread notice such a function, if it runs. */
void wake_main(PyThreadState *main);

#endif
