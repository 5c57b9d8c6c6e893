/* Memory of all kinds that an execution changes: the first thread to come must find it as main has left it.  back_memory KIND
 * (hugetlb is ordinary memory where the system has no such pages.) */
#include "t.h"
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/socket.h>

#define CHECK(condition) MUST(!(condition))

enum { PAGE = 4096, HUGE = 2 << 20 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static char *at, *other;
static int turn, file, ends[2];
static const char *kind;

static int is(const char *name) { return strcmp(kind, name) == 0; }

static int all(const char *from, size_t n, int what)
{
    for (size_t i = 0; i < n; i++)
        if (from[i] != what)
            return 0;
    return 1;
}

static char *map(size_t size, int flags)
{
    char *there = mmap(NULL, size, PROT_READ | PROT_WRITE, flags, flags & MAP_ANONYMOUS ? -1 : file, 0);
    CHECK(there != MAP_FAILED);
    return there;
}

static void prepare(void)
{
    const int private = MAP_PRIVATE | MAP_ANONYMOUS;
    if (is("huge") || is("collapse")) {
        char *there = map(3 * HUGE, private);
        at = (char *)(((uintptr_t)there + HUGE - 1) & ~(uintptr_t)(HUGE - 1));
        if (is("huge"))
            (void)madvise(at, 2 * HUGE, MADV_HUGEPAGE);
        memset(at, 1, 2 * HUGE);
    } else if (is("hugetlb")) {
        at = mmap(NULL, HUGE, PROT_READ | PROT_WRITE, private | MAP_HUGETLB, -1, 0);
        if (at == MAP_FAILED)
            at = map(HUGE, private);
        memset(at, 1, HUGE);
    } else if (is("memfd")) {
        file = memfd_create("memory", 0);
        CHECK(file >= 0 && ftruncate(file, 4 * PAGE) == 0);
        at = map(4 * PAGE, MAP_SHARED);
        memset(at, 1, 4 * PAGE);
    } else if (is("shared")) {
        at = map(4 * PAGE, MAP_SHARED | MAP_ANONYMOUS);
        memset(at, 1, 4 * PAGE);
    } else if (is("file")) {
        file = open("/proc/self/exe", O_RDONLY);
        CHECK(file >= 0);
        at = map(PAGE, MAP_PRIVATE);
        memset(at, 1, 64);
    } else {
        at = map(8 * PAGE, private);
        memset(at, 1, 8 * PAGE);
        other = map(8 * PAGE, private);
        memset(other, 2, 8 * PAGE);
        CHECK(socketpair(AF_UNIX, SOCK_STREAM, 0, ends) == 0 && write(ends[0], "abcd", 4) == 4);
    }
}

static void change(void)
{
    char bytes[4];
    if (is("huge") || is("collapse")) {
        CHECK(all(at, 2 * HUGE, 1));
        if (is("collapse"))
            (void)madvise(at, HUGE, 25 /* MADV_COLLAPSE */);
        at[5] = 7;
        at[HUGE / 2] = 7;
        at[HUGE + 3 * PAGE] = 7;
    } else if (is("hugetlb")) {
        CHECK(all(at, HUGE, 1));
        at[HUGE / 2] = 7;
    } else if (is("memfd")) {
        CHECK(all(at, 4 * PAGE, 1) && pread(file, bytes, 4, PAGE) == 4 && all(bytes, 4, 1));
        at[PAGE] = 7;
        CHECK(pwrite(file, "xyz", 3, 2 * PAGE) == 3 && at[2 * PAGE] == 'x');
    } else if (is("shared")) {
        CHECK(all(at, 4 * PAGE, 1));
        at[PAGE] = 7;
    } else if (is("file")) {
        CHECK(all(at, 64, 1));
        at[1] = 7;
    } else if (is("moved")) {
        CHECK(all(at, 8 * PAGE, 1) && all(other, 8 * PAGE, 2));
        char *there = mremap(at, 8 * PAGE, 16 * PAGE, MREMAP_MAYMOVE);
        CHECK(there != MAP_FAILED && all(there, 8 * PAGE, 1) && all(there + 8 * PAGE, 8 * PAGE, 0));
        memset(there, 7, 16 * PAGE);
        CHECK(mremap(other, 8 * PAGE, 4 * PAGE, 0) == other);
    } else if (is("over")) {
        CHECK(all(at, 8 * PAGE, 1));
        char *there = mmap(at + PAGE, 2 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
        CHECK(there == at + PAGE && all(there, 2 * PAGE, 0));
        memset(there, 7, 2 * PAGE);
    } else if (is("freed")) {
        CHECK(all(at, 8 * PAGE, 1));
        CHECK(madvise(at, 4 * PAGE, MADV_FREE) == 0);
        at[0] = 7;
    } else if (is("received")) {
        CHECK(all(at, 8 * PAGE, 1));
        CHECK(recv(ends[1], at + PAGE + 9, 4, 0) == 4 && memcmp(at + PAGE + 9, "abcd", 4) == 0);
    } else if (is("locked")) {
        CHECK(all(at, 8 * PAGE, 1));
        (void)mlock(at, 2 * PAGE);
        at[7] = 7;
    } else {
        CHECK(!"a kind of memory");
    }
}

static void *thread(void *unused)
{
    MUST(pthread_mutex_lock(&lock));
    if (++turn == 1)
        change();
    MUST(pthread_mutex_unlock(&lock));
    return unused;
}

int main(int argc, char **argv)
{
    pthread_t threads[4];
    kind = argc > 1 ? argv[1] : "moved";
    prepare();
    for (int i = 0; i < 4; i++)
        threads[i] = go(thread, NULL);
    for (int i = 0; i < 4; i++)
        join(threads[i]);
    return 0;
}
