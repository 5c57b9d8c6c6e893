/* Three threads take turns under a lock, each three times, and each turn leaves something of every kind: memory that was there and memory that comes, at the
 * end of the heap too, a place in a file, actions of signals, what is in a pipe and a socket, what is printed. Each turn finds what all turns before it have left, in each execution,
 * wherever within the one before it goes on. "takes": turns also take away what others have left. */
#include "t.h"
#include <fcntl.h>
#include <signal.h>
#include <sys/socket.h>

#define CHECK(condition) MUST(!(condition))

enum { PAGE = 4096, THREADS = 3, TURNS = 3, ALL = THREADS * TURNS };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int turn, who[ALL], takes, file, in_pipe[2], in_socket[2];
static char data[ALL][2 * PAGE], *fresh[ALL], *blocks[ALL], *ends[ALL], *before;
static __thread int own;

static int all(const char *at, size_t n, int what) {
    for (size_t i = 0; i < n; i++)
        if (at[i] != what)
            return 0;
    return 1;
}

static int mark_of(int n) { return 10 * (n + 1) + who[n]; }

static void handler_a(int signal) { (void)signal; }
static void handler_b(int signal) { (void)signal; }

/* One byte of each turn so far, and then one more. */
static void passes_on(const int ends[2]) {
    char there[ALL + 1];
    CHECK(turn == 0 || read(ends[0], there, sizeof there) == turn);
    for (int n = 0; n < turn; n++)
        CHECK(there[n] == mark_of(n));
    there[turn] = mark_of(turn);
    CHECK(write(ends[1], there, turn + 1) == turn + 1);
}

static void finds(void) {
    struct sigaction now;
    for (int n = 0; n < turn; n++) {
        int mark = mark_of(n);
        CHECK(all(data[n], sizeof data[n], mark) && all(blocks[n], 5000, mark) && all(ends[n], PAGE, mark));
        CHECK(!fresh[n] || all(fresh[n], 2 * PAGE, mark));
        CHECK(!fresh[n] || all(fresh[n] + 2 * PAGE, PAGE, 0));
    }
    for (int n = turn; n < ALL; n++)
        CHECK(all(data[n], sizeof data[n], 0));
    CHECK(lseek(file, 0, SEEK_CUR) == 6 + 2 * turn);
    CHECK(sigaction(SIGUSR1, NULL, &now) == 0);
    CHECK(now.sa_handler == (turn == 0 ? SIG_DFL : who[turn - 1] & 1 ? handler_a : handler_b));
    /* The first turn has changed it, and each one that ends a round has changed it back. */
    CHECK(all(before, PAGE, turn % THREADS == 0 ? 3 : 4) && all(before + PAGE, PAGE, 3));
}

static void leaves(int self) {
    char two[2];
    who[turn] = self;
    passes_on(in_pipe);
    passes_on(in_socket);
    int n = turn++;
    int mark = mark_of(n);
    struct sigaction action = { .sa_handler = self & 1 ? handler_a : handler_b };
    memset(data[n], mark, sizeof data[n]);
    CHECK((blocks[n] = malloc(5000)) != NULL);
    memset(blocks[n], mark, 5000);
    ends[n] = sbrk(2 * PAGE);
    CHECK(ends[n] != (void *)-1);
    memset(ends[n], mark, PAGE);
    fresh[n] = mmap(NULL, 3 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(fresh[n] != MAP_FAILED && all(fresh[n], 3 * PAGE, 0));
    memset(fresh[n], mark, 2 * PAGE);
    memset(before, turn % THREADS == 0 ? 3 : 4, PAGE);
    CHECK(sigaction(SIGUSR1, &action, NULL) == 0 && read(file, two, 2) == 2);
    if (takes && n == 3) {
        CHECK(munmap(fresh[1], 3 * PAGE) == 0 && mprotect(fresh[2] + 2 * PAGE, PAGE, PROT_READ | PROT_WRITE) == 0);
        CHECK(madvise(fresh[2] + 2 * PAGE, PAGE, MADV_DONTNEED) == 0);
        fresh[1] = NULL;
    }
    printf("%d%c", n, 'a' + self);
}

static void *thread(void *number) {
    for (own = 0; own < TURNS; own++) {
        pthread_mutex_lock(&lock);
        finds();
        leaves((int)(long)number);
        pthread_mutex_unlock(&lock);
    }
    CHECK(own == TURNS);
    return NULL;
}

int main(int argc, char **argv) {
    pthread_t t[THREADS];
    char some[6];
    takes = argc > 1 && !strcmp(argv[1], "takes");
    before = mmap(NULL, 2 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(before != MAP_FAILED);
    memset(before, 3, 2 * PAGE);
    file = open("/proc/self/exe", O_RDONLY);
    CHECK(file >= 0 && read(file, some, 6) == 6);
    CHECK(pipe(in_pipe) == 0 && socketpair(AF_UNIX, SOCK_STREAM, 0, in_socket) == 0);
    for (long i = 0; i < THREADS; i++)
        pthread_create(&t[i], NULL, thread, (void *)i);
    for (int i = 0; i < THREADS; i++)
        pthread_join(t[i], NULL);
    CHECK(turn == ALL);
    printf("\n");
    return 0;
}
