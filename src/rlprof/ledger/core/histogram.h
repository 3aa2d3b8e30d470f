/* Durations in 32 logarithmic buckets per octave: base 2, scale 5 of the OpenTelemetry exponential histogram, so a
 * quantile is known to 1.1 % and two histograms add up exactly.
 *
 * Bucket i covers [2^(i/32), 2^((i+1)/32)) nanoseconds. An octave's 32 counters are allocated when it is first
 * touched; a span that has touched its octaves allocates nothing. */
#ifndef RLPROF_HISTOGRAM_H
#define RLPROF_HISTOGRAM_H

#include <stddef.h>
#include <stdint.h>

#define HISTOGRAM_OCTAVES 48 /* up to 2^48 ns, three days; longer durations count in the last bucket */
#define HISTOGRAM_SUB 32

/* Counters of 32 bits, because most octaves hold only a few outliers. Overflows are counted beside them. */
typedef struct {
    uint32_t counts[HISTOGRAM_SUB];
    uint32_t *overflows; /* NULL until one does */
} HistogramOctave;

typedef struct {
    HistogramOctave *octave[HISTOGRAM_OCTAVES];
} Histogram;

/* A linear 64th of an octave spans less than one bucket, so it holds at most one bucket border: `border` is its
 * mantissa (in 2^63 units of 1.0), `below` the bucket under it. */
typedef struct {
    uint64_t border;
    uint8_t below;
} HistogramCell;

extern HistogramCell histogram_cells[64];

void histogram_init_cells(void);
__attribute__((noinline, cold)) HistogramOctave *histogram_new_octave(Histogram *, int octave); /* NULL: no memory */
__attribute__((noinline, cold)) void histogram_overflow(HistogramOctave *, int sub);
uint64_t histogram_count(const Histogram *, int bucket);
void histogram_zero(Histogram *histogram);
void histogram_free(Histogram *histogram);

static inline int
histogram_bucket(int64_t ns)
{
    if (ns < 1) {
        return 0;
    }
    int octave = 63 - __builtin_clzll((uint64_t)ns);
    if (octave >= HISTOGRAM_OCTAVES) {
        return HISTOGRAM_OCTAVES * HISTOGRAM_SUB - 1;
    }
    uint64_t mantissa = (uint64_t)ns << (63 - octave);
    const HistogramCell *cell = &histogram_cells[(mantissa >> 57) & 63];
    return octave * HISTOGRAM_SUB + cell->below + (mantissa >= cell->border);
}

static inline void
histogram_add(Histogram *histogram, int64_t ns)
{
    int bucket = histogram_bucket(ns);
    HistogramOctave *octave = histogram->octave[bucket / HISTOGRAM_SUB];
    if (__builtin_expect(octave == NULL, 0)) {
        octave = histogram_new_octave(histogram, bucket / HISTOGRAM_SUB);
        if (octave == NULL) {
            return;
        }
    }
    if (__builtin_expect(++octave->counts[bucket % HISTOGRAM_SUB] == 0, 0)) {
        histogram_overflow(octave, bucket % HISTOGRAM_SUB);
    }
}

#endif
