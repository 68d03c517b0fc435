// Linked into the program: its main is called from here, and its exit leads back here, so that the counts of
// all kernels are still told at the end.

#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>

extern void *__dso_handle;
void __cxa_finalize(void *);
void __real_exit(int) __attribute__((noreturn));

static jmp_buf outside;
static pthread_t caller;
static volatile int running, code;
static uintptr_t device_start, device_end;

static void say(const char *words) { (void)!write(2, words, strlen(words)); }

static void at_bad_access(int signal_number, siginfo_t *about, void *context) {
    uintptr_t address = (uintptr_t)about->si_addr;
    if (address >= device_start && address < device_end)
        say("gpulab run: the host read or wrote device memory, which only kernels reach. Copy it with cudaMemcpy, "
            "or allocate it with cudaMallocManaged.\n");
    else
        say("gpulab run: the program's host code used an invalid address (segmentation fault).\n");
    _exit(128 + signal_number);
}

// Calls the program's main; its exit code. Device memory has addresses from `start` up to `end`.
int gpulab_run(int (*program)(int, char **, char **), int count, char **arguments, char **environment,
               uintptr_t start, uintptr_t end) {
    struct sigaction action = {0};
    device_start = start, device_end = end;
    action.sa_sigaction = at_bad_access, action.sa_flags = SA_SIGINFO;
    sigaction(SIGSEGV, &action, 0);
    sigaction(SIGBUS, &action, 0);
    signal(SIGINT, SIG_DFL);
    caller = pthread_self();
    running = 1;
    if (!setjmp(outside))
        code = program(count, arguments, environment);
    running = 0;
    return code;
}

// What the program has registered for its end: destructors of its variables, and functions by atexit.
void gpulab_finish(void) { __cxa_finalize(&__dso_handle); }

void __wrap_exit(int status) {
    if (!running || !pthread_equal(caller, pthread_self()))
        __real_exit(status);
    code = status;
    longjmp(outside, 1);
}

// It returns a structure, which an answer of Python's cannot.
struct channels {
    int x, y, z, w, kind;
};
struct channels cudaCreateChannelDesc(int x, int y, int z, int w, int kind) {
    return (struct channels){x, y, z, w, kind};
}
