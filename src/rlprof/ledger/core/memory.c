/* The process's exact peak inside a span.
 *
 * The kernel keeps a high-water mark of resident memory and can clear it (proc(5), clear_refs, "5"). The whole
 * process has one mark, so before it is cleared it is folded into every open tracked span, on any lane. Where it
 * cannot be cleared, a peak is known only if the mark rose inside the span. */
#include "core.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

static int64_t
high_water_of_usage(void)
{
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
#if defined(__APPLE__)
    return usage.ru_maxrss;
#else
    return (int64_t)usage.ru_maxrss * 1024;
#endif
}

static int64_t
high_water_of_status(void)
{
    char text[4096];
    int file = open("/proc/self/status", O_RDONLY | O_CLOEXEC);
    ssize_t length = file < 0 ? -1 : read(file, text, sizeof text - 1);
    if (file >= 0) {
        close(file);
    }
    text[length > 0 ? length : 0] = 0;
    const char *line = strstr(text, "VmHWM:");
    return line ? strtoll(line + 6, NULL, 10) * 1024 : -1;
}

/* getrusage is ten times as fast, but a process inherits its figure from its parent, and clear_refs does not clear that
 * part. Below the inherited figure only /proc is right. */
static int64_t
high_water(void)
{
    static int64_t inherited = -1;
    int64_t usage = high_water_of_usage();
    if (inherited < 0) {
        int64_t own = high_water_of_status();
        inherited = own >= 0 && usage > own + (1 << 20) ? usage : 0;
    }
    if (usage > inherited) {
        return usage;
    }
    int64_t own = high_water_of_status();
    return own >= 0 ? own : usage;
}

static void
clear_high_water(Ledger *ledger)
{
    if (ledger->clear_refs == -1) {
        ledger->clear_refs = open("/proc/self/clear_refs", O_WRONLY | O_CLOEXEC);
    }
    if (ledger->clear_refs >= 0 && write(ledger->clear_refs, "5", 1) != 1) {
        close(ledger->clear_refs);
        ledger->clear_refs = -1;
    }
    if (ledger->clear_refs == -1) {
        ledger->clear_refs = -2;
    }
}

static int64_t
fold_high_water(Ledger *ledger)
{
    int64_t peak = high_water();
    ledger->process_peak = larger(ledger->process_peak, peak);
    for (uint32_t i = 0; i < ledger->lanes_used; i++) {
        Lane *lane = ledger->lanes[i];
        for (Entry *entry = lane->stack + 1; entry <= lane->top; entry++) {
            if ((entry->span->flags & SPAN_MEMORY) && entry->memory_start >= 0) {
                entry->memory_peak = larger(entry->memory_peak, peak);
            }
        }
    }
    return peak;
}

void
memory_enter(Ledger *ledger, Entry *entry)
{
    fold_high_water(ledger);
    clear_high_water(ledger);
    entry->memory_start = entry->memory_peak = high_water();
}

void
memory_exit(Ledger *ledger, Entry *entry)
{
    int64_t peak = larger(fold_high_water(ledger), entry->memory_peak);
    Node *node = entry->node;
    if (ledger->clear_refs >= 0 || peak != entry->memory_start) { /* else the mark is from an older peak */
        node->memory_peak = larger(node->memory_peak, peak);
        node->memory_rise = larger(node->memory_rise, peak - entry->memory_start);
    }
}

int64_t
memory_process_peak(Ledger *ledger)
{
    fold_high_water(ledger);
    return ledger->process_peak;
}

/* The open file belongs to the parent: writing to it would clear the parent's mark. */
void
memory_after_fork(Ledger *ledger)
{
    if (ledger->clear_refs >= 0) {
        close(ledger->clear_refs);
        ledger->clear_refs = -1;
    }
    ledger->process_peak = 0;
}
