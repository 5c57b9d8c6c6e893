/* Memory that was there at the first choice and is unmapped: nobody may find it there, and the next execution finds it as it was.  back_hidden KIND
 * Which pages are written depends on the order of the threads. */
#include "t.h"
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <sys/mman.h>

#define CHECK(condition) MUST(!(condition))

enum { PAGE = 4096, PAGES = 64, SIZE = PAGES * PAGE, KEPT = 60 * PAGE + 3 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static char *at;
static int turn, last;
static const char *kind;
static sigjmp_buf before;
static volatile int code;
static char text[1 << 16];

static int is(const char *name) { return strcmp(kind, name) == 0; }

static int all(const char *from, size_t n, int what)
{
    for (size_t i = 0; i < n; i++)
        if (from[i] != what)
            return 0;
    return 1;
}

static void faults(int signal, siginfo_t *info, void *unused)
{
    (void)signal, (void)unused;
    code = info->si_addr == at + 5 ? info->si_code : -1;
    siglongjmp(before, 1);
}

static void map_again(void)
{
    char *there = mmap(at, SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
    CHECK(there == at && all(there, SIZE, 0));
    memset(there, 9, SIZE);
}

static void unmap(void)
{
    unsigned char there;
    if (is("sometimes") && last % 2)
        return;
    if (is("given")) {
        CHECK(madvise(at, SIZE, MADV_DONTNEED) == 0 && all(at, SIZE, 0));
        return;
    }
    if (is("part")) {
        CHECK(munmap(at + 8 * PAGE, 8 * PAGE) == 0 && munmap(at + 4 * PAGE, 8 * PAGE) == 0);
        CHECK(mprotect(at + 40 * PAGE, PAGE, PROT_READ) == 0 && at[40 * PAGE] == 0);
    }
    CHECK(munmap(at, SIZE) == 0);
    if (is("again") || is("sometimes") || is("part")) {
        map_again();
    } else if (is("asked")) {
        CHECK(mincore(at, PAGE, &there) < 0 && errno == ENOMEM);
        CHECK(mprotect(at, PAGE, PROT_READ) < 0 && errno == ENOMEM);
        CHECK(write(1, at, 1) < 0 && errno == EFAULT);
        CHECK(munmap(at, SIZE) == 0);
    } else if (is("advised")) {
        CHECK(madvise(at, PAGE, MADV_DONTNEED) < 0 && errno == ENOMEM);
    } else if (is("listed")) {
        char line[32];
        size_t n = 0;
        ssize_t more;
        int file = open("/proc/self/maps", O_RDONLY);
        CHECK(file >= 0);
        while ((more = read(file, text + n, sizeof text - 1 - n)) > 0)
            n += (size_t)more;
        close(file);
        snprintf(line, sizeof line, "%lx-", (unsigned long)at);
        CHECK(strstr(text, "[stack]") && !strstr(text, line));
    } else if (is("fault")) {
        struct sigaction action = { .sa_sigaction = faults, .sa_flags = SA_SIGINFO };
        CHECK(sigaction(SIGSEGV, &action, NULL) == 0);
        if (sigsetjmp(before, 1) == 0)
            at[5] = 1;
        CHECK(code == SEGV_MAPERR);
    }
}

static void *thread(void *number)
{
    MUST(pthread_mutex_lock(&lock));
    char *page = at + ((intptr_t)number * 8 + turn) * PAGE;
    CHECK(*page == 0 && at[KEPT] == 5);
    *page = 7;
    turn++;
    last = (int)(intptr_t)number;
    MUST(pthread_mutex_unlock(&lock));
    return NULL;
}

int main(int argc, char **argv)
{
    pthread_t threads[4];
    kind = argc > 1 ? argv[1] : "pages";
    at = mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(at != MAP_FAILED);
    at[KEPT] = 5;
    for (intptr_t i = 0; i < 4; i++)
        threads[i] = go(thread, (void *)i);
    for (int i = 0; i < 4; i++)
        join(threads[i]);
    unmap();
    return 0;
}
