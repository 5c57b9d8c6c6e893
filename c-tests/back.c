/* Two threads come to a lock; each does all kinds of things to memory, mappings, descriptors and signals there. The first one must find all as main has
 * left it, in each execution, however executions begin. */
#include "t.h"
#include <fcntl.h>
#include <signal.h>

#define CHECK(condition) MUST(!(condition))

enum { PAGE = 4096, PAGES = 4 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static char zeros[64 * PAGE];
static int number = 7, turn;
static char *block, *sent_away, *guarded, *given_up, *read_into, *gone, *reserved;
static int file, ends[2];

static char *map(int prot, int fill) {
    char *at = mmap(NULL, PAGES * PAGE, prot, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(at != MAP_FAILED);
    if (fill != 0)
        memset(at, fill, PAGES * PAGE);
    return at;
}

static int all(const char *at, size_t n, int what) {
    for (size_t i = 0; i < n; i++)
        if (at[i] != what)
            return 0;
    return 1;
}

static void finds_what_main_left(void) {
    char name[8];
    sigset_t mask;
    CHECK(all(zeros, sizeof zeros, 0) && number == 7);
    CHECK(all(block, 100000, 1) && all(sent_away, 300000, 2) && all(given_up, PAGES * PAGE, 4));
    CHECK(all(guarded, PAGES * PAGE, 3) && all(read_into, PAGES * PAGE, 5) && all(gone, PAGES * PAGE, 6));
    CHECK(lseek(file, 0, SEEK_CUR) == 6);
    CHECK(read(file, name, 4) == 4);
    CHECK(fcntl(9, F_GETFD) < 0);
    CHECK(sigprocmask(SIG_SETMASK, NULL, &mask) == 0 && !sigismember(&mask, SIGUSR2));
}

static void changes_all(void) {
    struct sigaction ignore = {.sa_handler = SIG_IGN};
    sigset_t mask;
    /* Memory: data, a heap that grows, blocks that go and come, pages nobody has touched. */
    for (size_t i = 0; i < sizeof zeros; i += 3 * PAGE)
        zeros[i] = 1;
    number++;
    memset(block, 11, 100000);
    free(sent_away);
    char *more = malloc(3 << 20), *small = malloc(200);
    memset(more, 12, 3 << 20);
    memset(small, 13, 200);
    void *end = sbrk(8 * PAGE);
    CHECK(end != (void *)-1);
    memset(end, 14, 8 * PAGE);
    char deep[10 * PAGE];
    memset(deep, 15, sizeof deep);
    /* Mappings: new ones, one less, one that cannot be written, one that can be, one that is given up. */
    char *fresh = map(PROT_READ | PROT_WRITE, 16);
    CHECK(munmap(fresh + PAGE, PAGE) == 0);
    CHECK(munmap(gone, PAGES * PAGE) == 0);
    memset(guarded, 17, PAGE);
    CHECK(mprotect(guarded, 2 * PAGE, PROT_READ) == 0);
    CHECK(mprotect(reserved + PAGE, PAGE, PROT_READ | PROT_WRITE) == 0);
    CHECK(all(reserved + PAGE, PAGE, 0));
    memset(reserved + PAGE, 18, PAGE);
    CHECK(madvise(given_up, 2 * PAGE, MADV_DONTNEED) == 0);
    CHECK(all(given_up, 2 * PAGE, 0) && all(given_up + 2 * PAGE, 2 * PAGE, 4));
    /* The kernel writes. */
    CHECK(lseek(file, 0, SEEK_SET) == 0 && read(file, read_into + 100, 50) == 50);
    CHECK(read(file, zeros + 50 * PAGE, 50) == 50);
    /* Descriptors and signals. */
    CHECK(dup2(file, 9) == 9);
    CHECK(open("/dev/null", O_RDONLY) >= 0);
    CHECK(sigemptyset(&mask) == 0 && sigaddset(&mask, SIGUSR2) == 0);
    CHECK(sigprocmask(SIG_BLOCK, &mask, NULL) == 0);
    if (turn == 1)
        CHECK(sigaction(SIGUSR1, &ignore, NULL) == 0);
    CHECK(write(ends[1], "x", 1) == 1);
}

static void *thread(void *name) {
    pthread_mutex_lock(&lock);
    if (++turn == 1) {
        finds_what_main_left();
        changes_all();
    } else {
        char two[2];
        CHECK(turn == 2 && number == 8 && block[5] == 11 && read(ends[0], two, 2) == 1);
    }
    printf("%s\n", (char *)name);
    pthread_mutex_unlock(&lock);
    return NULL;
}

int main(int argc, char **argv) {
    pthread_t a, b;
    const char *self = argc > 1 ? argv[1] : argv[0];
    block = malloc(100000);
    memset(block, 1, 100000);
    sent_away = malloc(300000);
    memset(sent_away, 2, 300000);
    guarded = map(PROT_READ | PROT_WRITE, 3);
    given_up = map(PROT_READ | PROT_WRITE, 4);
    read_into = map(PROT_READ | PROT_WRITE, 5);
    gone = map(PROT_READ | PROT_WRITE, 6);
    reserved = map(PROT_NONE, 0);
    file = open(self, O_RDONLY);
    CHECK(file >= 0 && pipe(ends) == 0);
    char some[6];
    CHECK(read(file, some, 6) == 6);
    printf("begin\n");
    fflush(stdout);
    pthread_create(&a, NULL, thread, "a");
    pthread_create(&b, NULL, thread, "b");
    pthread_join(a, NULL);
    pthread_join(b, NULL);
    return 0;
}
