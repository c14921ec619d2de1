/* Looks for leaks when main is over and the drivers' threads still sleep. LeakSanitizer by itself
 * looks after the libraries' destructors, while those threads end, and sometimes crashes on them.
 */
#include <sanitizer/lsan_interface.h>
#include <stdlib.h>

__attribute__((constructor)) static void check_at_exit(void) { atexit(__lsan_do_leak_check); }
