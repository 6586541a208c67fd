/* Starts and ends the counts of callgrind. In a process without valgrind these requests do nothing. */
#include <valgrind/callgrind.h>

/* Once: each start makes valgrind translate all code again, which takes longer than most workloads. */
void start_instrumentation(void) { CALLGRIND_START_INSTRUMENTATION; }

void start_count(void) { CALLGRIND_ZERO_STATS; }

void end_count(const char *name) { CALLGRIND_DUMP_STATS_AT(name); }

int is_counted(void) { return RUNNING_ON_VALGRIND != 0; }
