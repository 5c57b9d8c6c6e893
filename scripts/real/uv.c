// libuv: work for the pool of threads, a timer, and an echo over a connection, all in one loop.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <uv.h>

static int results[4], left = 4, n_ticks, n_answered;
static char answer[64];
static uv_work_t works[4];
static uv_tcp_t listener, peer, client;
static uv_timer_t ticks;
static char room[64];

static void check(int result, const char *what) {
    if (result < 0) {
        printf("%s: %s\n", what, uv_strerror(result));
        exit(1);
    }
}

static void work(uv_work_t *w) {
    int i = w - works;
    for (int n = 1; n <= 1000 * (i + 1); n++)
        results[i] += n;
}

static void worked(uv_work_t *w, int status) {
    check(status, "work");
    left--;
}

static void tick(uv_timer_t *t) {
    if (++n_ticks == 3)
        uv_close((uv_handle_t *)t, 0);
}

static void give(uv_handle_t *h, size_t wanted, uv_buf_t *b) {
    *b = uv_buf_init(room, sizeof room);
}

static void sent(uv_write_t *w, int status) {
    check(status, "write");
    free(w);
}

static void say(uv_tcp_t *to, char *what, size_t n) {
    uv_buf_t b = uv_buf_init(what, n);
    check(uv_write(malloc(sizeof(uv_write_t)), (uv_stream_t *)to, &b, 1, sent), "write");
}

static void echo(uv_stream_t *s, ssize_t n, const uv_buf_t *b) {
    static char kept[64];
    if (n < 0) {
        uv_close((uv_handle_t *)s, 0);
        uv_close((uv_handle_t *)&listener, 0);
        return;
    }
    memcpy(kept, b->base, n);
    say((uv_tcp_t *)s, kept, n);
}

static void came(uv_stream_t *l, int status) {
    check(status, "listen");
    check(uv_tcp_init(l->loop, &peer), "init");
    check(uv_accept(l, (uv_stream_t *)&peer), "accept");
    check(uv_read_start((uv_stream_t *)&peer, give, echo), "read");
}

static void answered(uv_stream_t *s, ssize_t n, const uv_buf_t *b) {
    check(n, "answer");
    memcpy(answer, b->base, n_answered = n);
    uv_close((uv_handle_t *)s, 0);
}

static void connected(uv_connect_t *c, int status) {
    check(status, "connect");
    check(uv_read_start((uv_stream_t *)&client, give, answered), "read");
    say(&client, "hello", 5);
}

int main(void) {
    uv_loop_t *loop = uv_default_loop();
    for (int i = 0; i < 4; i++)
        check(uv_queue_work(loop, works + i, work, worked), "queue");
    check(uv_timer_init(loop, &ticks), "timer");
    check(uv_timer_start(&ticks, tick, 10, 10), "timer");
    struct sockaddr_in at;
    check(uv_ip4_addr("127.0.0.1", 21314, &at), "address");
    check(uv_tcp_init(loop, &listener), "init");
    check(uv_tcp_bind(&listener, (struct sockaddr *)&at, 0), "bind");
    check(uv_listen((uv_stream_t *)&listener, 8, came), "listen");
    check(uv_tcp_init(loop, &client), "init");
    static uv_connect_t c;
    check(uv_tcp_connect(&c, &client, (struct sockaddr *)&at, connected), "connect");
    check(uv_run(loop, UV_RUN_DEFAULT), "run");
    uv_loop_close(loop);
    printf("sums %d %d %d %d, %d left\n", results[0], results[1], results[2], results[3], left);
    printf("%d ticks, echo %.*s\n", n_ticks, n_answered, answer);
    return 0;
}
