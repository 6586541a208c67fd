/* Starts and ends the counts of callgrind. In a process without valgrind these requests do nothing. */
#include <valgrind/callgrind.h>

void start_count(void) {
    CALLGRIND_START_INSTRUMENTATION;
    CALLGRIND_ZERO_STATS;
}

void end_count(const char *name) {
    CALLGRIND_DUMP_STATS_AT(name);
    CALLGRIND_STOP_INSTRUMENTATION;
}

int is_counted(void) { return RUNNING_ON_VALGRIND != 0; }
